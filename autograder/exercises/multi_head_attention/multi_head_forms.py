"""Other forms of `MultiHeadAttention` that every check accepts."""

import torch

from autograder.exercises.multi_head_attention.multi_head_attention import exercise
from autograder.exercises.multi_head_attention.parts import Parts
from course_lib.tensor_attention import tensor_attention


@exercise.alternative
class WithoutHelpers(torch.nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.heads, self.width = num_heads, d_model // num_heads
        self.w_o, self.w_v = torch.nn.Linear(d_model, d_model, bias), torch.nn.Linear(d_model, d_model, bias)
        self.w_k, self.w_q = torch.nn.Linear(d_model, d_model, bias), torch.nn.Linear(d_model, d_model, bias)

    def forward(self, query, key, value, mask=None):
        batch = query.shape[0]
        q = self.w_q(query).view(batch, -1, self.heads, self.width).transpose(1, 2)
        k = self.w_k(key).view(batch, -1, self.heads, self.width).transpose(1, 2)
        v = self.w_v(value).view(batch, -1, self.heads, self.width).transpose(1, 2)
        scores = torch.matmul(q * self.width**-0.5, k.transpose(-2, -1))
        if mask is not None:
            if mask.dtype != torch.bool:
                raise ValueError("the mask must be boolean")
            if mask.dim() not in (2, 4):
                raise ValueError("the mask must have 2 or 4 axes")
            scores = scores.masked_fill(mask, float("-inf"))
        weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
        joined = torch.matmul(weights, v).transpose(1, 2).contiguous().view(batch, -1, self.heads * self.width)
        return self.w_o(joined), weights


@exercise.alternative
class HeadsFoldedIntoTheBatch(Parts):
    def attend(self, query, key, value, mask):
        shape = (len(query), self.num_heads, query.shape[2], key.shape[2])
        mask = mask if mask is None or mask.dtype != torch.bool else mask.expand(shape).flatten(0, 1)
        found = tensor_attention(query.flatten(0, 1), key.flatten(0, 1), value.flatten(0, 1), mask)
        output, weights = (x.unflatten(0, (-1, self.num_heads)) for x in found)
        return output, weights


@exercise.alternative
class OneHeadAtATime(Parts):
    def attend(self, query, key, value, mask):
        if mask is not None:
            mask = mask.expand(len(query), self.num_heads, -1, -1) if mask.ndim == 4 else mask[None, None]
        heads = [
            tensor_attention(
                query[:, i], key[:, i], value[:, i], None if mask is None else mask[:, i if mask.shape[1] > 1 else 0]
            )
            for i in range(self.num_heads)
        ]
        return torch.stack([head[0] for head in heads], 1), torch.stack([head[1] for head in heads], 1)


@exercise.alternative
class ByEinsum(Parts):
    def attend(self, query, key, value, mask):
        _, weights = tensor_attention(query, key, value, mask)
        return torch.einsum("bhqk,bhkd->bhqd", weights, value), weights


@exercise.alternative
class OutputAsASumOverHeads(Parts):
    def merge(self, x):
        return x

    def forward(self, query, key, value, mask=None):
        query, key, value = (self.split(w(x)) for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value)))
        output, weights = self.attend(query, key, value, self.checked(mask))
        rows = self.w_o.weight.T.unflatten(0, (self.num_heads, -1))
        total = torch.einsum("bhqd,hde->bqe", output, rows)
        return total if self.w_o.bias is None else total + self.w_o.bias, weights
