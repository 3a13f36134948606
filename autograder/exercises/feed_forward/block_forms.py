"""Right blocks of other forms."""

import torch
from torch import nn

from autograder.exercises.feed_forward.feed_forward import TanhFeedForward
from course_lib import block
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import MultiHeadAttention


class TanhBlock(block.TransformerBlock):
    """The block whose feed-forward network uses the tanh form of GELU, which passes as well."""

    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation="relu"):
        super().__init__(d_model, num_heads, d_ff, norm_first, activation)
        self.ffn = TanhFeedForward(d_model, d_ff, activation)


class _Plain(nn.Module):
    """A block written from nothing, for the accepted forms."""

    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation="relu"):
        super().__init__()
        self.norm_2, self.norm_1 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.ffn = FeedForward(d_model, d_ff, activation=activation)
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.first = norm_first


class InOneLineEach(_Plain):
    def forward(self, x, mask=None):
        if self.first:
            h = x + self.attention(*[self.norm_1(x)] * 3, mask=mask)[0]
            return h + self.ffn(self.norm_2(h))
        h = self.norm_1(x + self.attention(x, x, x, mask=mask)[0])
        return self.norm_2(h + self.ffn(h))


class WithAStepForBothOrders(_Plain):
    def step(self, x, sublayer, norm):
        return x + sublayer(norm(x)) if self.first else norm(x + sublayer(x))

    def forward(self, x, mask=None):
        x = self.step(x, lambda tokens: self.attention(tokens, tokens, tokens, mask)[0], self.norm_1)
        return self.step(x, self.ffn, self.norm_2)


class _OwnNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        centered = x - x.mean(-1, keepdim=True)
        return self.weight * centered / (centered.square().mean(-1, keepdim=True) + 1e-5).sqrt() + self.bias


class WithANormOfTheirOwn(InOneLineEach):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation="relu"):
        super().__init__(d_model, num_heads, d_ff, norm_first, activation)
        self.norm_1, self.norm_2 = _OwnNorm(d_model), _OwnNorm(d_model)


class WithTheTanhForm(InOneLineEach):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation="relu"):
        super().__init__(d_model, num_heads, d_ff, norm_first, activation)
        self.ffn = TanhFeedForward(d_model, d_ff, activation)


class WithIdentitiesForAbsentNorms(_Plain):
    def forward(self, x, mask=None):
        same = nn.Identity()
        before = (self.norm_1, self.norm_2) if self.first else (same, same)
        after = (same, same) if self.first else (self.norm_1, self.norm_2)
        read = before[0](x)
        attended, _ = self.attention(read, read, read, mask)
        x = after[0](torch.add(x, attended))
        return after[1](torch.add(self.ffn(before[1](x)), x))


ACCEPTED_FORMS = (
    InOneLineEach,
    WithAStepForBothOrders,
    WithANormOfTheirOwn,
    WithTheTanhForm,
    WithIdentitiesForAbsentNorms,
)
