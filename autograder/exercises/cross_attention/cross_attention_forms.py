"""Other forms of `CrossAttention` that every check accepts."""

import torch

from autograder.exercises.cross_attention.cross_attention import exercise
from autograder.exercises.cross_attention.parts import Parts
from course_lib.multi_head import MultiHeadAttention
from course_lib.tensor_attention import tensor_attention


@exercise.alternative
class TheLayerOfChapterTwo(MultiHeadAttention):
    def forward(self, x, memory, memory_mask=None):
        mask = None if memory_mask is None else memory_mask[:, None, None, :]
        return super().forward(x, memory, memory, mask)


@exercise.alternative
class WithoutHelpers(torch.nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.heads, self.width = num_heads, d_model // num_heads
        self.w_o, self.w_v = torch.nn.Linear(d_model, d_model), torch.nn.Linear(d_model, d_model)
        self.w_k, self.w_q = torch.nn.Linear(d_model, d_model), torch.nn.Linear(d_model, d_model)

    def forward(self, x, memory, memory_mask=None):
        b, m, _ = x.shape
        n = memory.size(1)
        q = self.w_q(x).view(b, m, self.heads, self.width).transpose(1, 2)
        k = self.w_k(memory).view(b, n, self.heads, self.width).transpose(1, 2)
        v = self.w_v(memory).view(b, n, self.heads, self.width).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / self.width**0.5
        if memory_mask is not None:
            if memory_mask.dtype != torch.bool:
                raise ValueError("the mask must be boolean")
            scores = scores.masked_fill(memory_mask.view(b, 1, 1, n), float("-inf"))
        weights = torch.nan_to_num(scores.softmax(-1))
        return self.w_o((weights @ v).transpose(1, 2).reshape(b, m, -1)), weights


@exercise.alternative
class HeadsFoldedIntoTheBatch(Parts):
    def attend(self, query, key, value, mask):
        shape = (len(query), self.num_heads, query.shape[2], key.shape[2])
        mask = None if mask is None else mask.expand(shape).flatten(0, 1)
        found = tensor_attention(query.flatten(0, 1), key.flatten(0, 1), value.flatten(0, 1), mask)
        output, weights = (x.unflatten(0, (-1, self.num_heads)) for x in found)
        return output, weights


@exercise.alternative
class ByEinsum(Parts):
    def attend(self, query, key, value, mask):
        scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * self.d_head**-0.5
        scores = scores if mask is None else torch.where(mask, -torch.inf, scores)
        weights = torch.where(torch.isnan(scores.softmax(-1)), 0.0, scores.softmax(-1))
        return torch.einsum("bhqk,bhkd->bhqd", weights, value), weights


@exercise.alternative
class OneRowAtATime(Parts):
    def forward(self, x, memory, memory_mask=None):
        rows = [
            super(OneRowAtATime, self).forward(
                x[[row]], memory[[row]], None if memory_mask is None else memory_mask[[row]]
            )
            for row in range(len(x))
        ]
        return torch.cat([row[0] for row in rows]), torch.cat([row[1] for row in rows])
