"""The layer with its steps as methods, so that a belief or another form can replace one of them."""

import torch

from course_lib import multi_head
from course_lib.multi_head import merge_heads, split_heads
from course_lib.tensor_attention import tensor_attention


class Parts(multi_head.MultiHeadAttention):
    """The layer, step by step."""

    def split(self, x):
        return split_heads(x, self.num_heads)

    def attend(self, query, key, value, mask):
        return tensor_attention(query, key, value, mask)

    def merge(self, x):
        return merge_heads(x)

    def checked(self, mask):
        if isinstance(mask, torch.Tensor) and mask.ndim == 3:
            raise ValueError("a mask of 3 axes is ambiguous")
        return mask

    def forward(self, query, key, value, mask=None):
        query, key, value = (self.split(w(x)) for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value)))
        output, weights = self.attend(query, key, value, self.checked(mask))
        return self.w_o(self.merge(output)), weights
