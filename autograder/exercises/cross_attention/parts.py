"""Cross-attention with its steps as methods, so that a belief or another form can replace one of them."""

from torch import Tensor

from course_lib import cross_attention
from course_lib.multi_head import merge_heads, split_heads
from course_lib.tensor_attention import require_mask, tensor_attention


class Parts(cross_attention.CrossAttention):
    """The layer, step by step."""

    def split(self, x: Tensor) -> Tensor:
        """Cut features into heads."""
        return split_heads(x, self.num_heads)

    def sources(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Give what queries, keys and values are made from."""
        return x, memory, memory

    def hidden(self, mask: Tensor | None, x: Tensor, memory: Tensor) -> Tensor | None:
        """Give the mask of the scores."""
        return None if mask is None else require_mask(mask, memory.shape[:2])[:, None, None, :]

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Share and mix, head by head."""
        return tensor_attention(query, key, value, mask)

    def forward(self, x, memory, memory_mask=None):
        """Project, split, attend, merge, project."""
        query, key, value = self.sources(x, memory)
        heads = [self.split(w(side)) for w, side in ((self.w_q, query), (self.w_k, key), (self.w_v, value))]
        output, weights = self.attend(heads[0], heads[1], heads[2], self.hidden(memory_mask, x, memory))
        return self.w_o(merge_heads(output)), weights
