"""A small causal model that can be built wrong on purpose, and whose attention can be watched while it trains."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.masks import masked_softmax
from course_lib.models.deep_reverser import STEPS
from course_lib.multi_head import head_width, merge_heads, split_heads

Softmax = Callable[[Tensor, Tensor], Tensor]
HIDDEN_PER_FEATURE = 2  # width of the feed-forward part; the usual 4 only costs time here


def careless_softmax(
    scores: Float[Tensor, "batch heads query key"], mask: Bool[Tensor, "query key"]
) -> Float[Tensor, "batch heads query key"]:
    """Divide exp(score) by its sum, just as the formula stands, with no maximum taken away: large scores overflow."""
    powers = scores.exp().masked_fill(mask, 0)
    return powers / powers.sum(dim=-1, keepdim=True)


class WatchedAttention(nn.Module):
    """Attend with several heads, and keep the largest score and the weights of the last pass for whoever looks."""

    def __init__(self, d_model: int, num_heads: int, softmax: Softmax) -> None:
        super().__init__()
        self.num_heads, self.d_head, self.softmax = num_heads, head_width(d_model, num_heads), softmax
        self.w_q, self.w_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.w_v, self.w_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.largest_score = math.nan
        self.weights: Tensor | None = None

    def forward(
        self, x: Float[Tensor, "batch sequence d_model"], mask: Bool[Tensor, "sequence sequence"]
    ) -> Float[Tensor, "batch sequence d_model"]:
        """Return what the tokens found."""
        query, key, value = (split_heads(linear(x), self.num_heads) for linear in (self.w_q, self.w_k, self.w_v))
        scores = query @ key.mT / math.sqrt(self.d_head)
        weights = self.softmax(scores, mask)
        self.largest_score = scores.detach().masked_fill(mask, -math.inf).max().item()
        self.weights = weights.detach()
        return self.w_o(merge_heads(weights @ value))


class WatchedBlock(nn.Module):
    """Attention and a feed-forward network, each in one step of the given kind."""

    def __init__(self, d_model: int, num_heads: int, kind: str, softmax: Softmax) -> None:
        super().__init__()
        self.step = STEPS[kind]
        self.attention = WatchedAttention(d_model, num_heads, softmax)
        hidden = HIDDEN_PER_FEATURE * d_model
        self.ffn = nn.Sequential(nn.Linear(d_model, hidden), nn.ReLU(), nn.Linear(hidden, d_model))
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(
        self, x: Float[Tensor, "batch sequence d_model"], mask: Bool[Tensor, "sequence sequence"]
    ) -> Float[Tensor, "batch sequence d_model"]:
        """Apply both sublayers."""
        x = self.step(x, lambda inner: self.attention(inner, mask), self.norm_1)
        return self.step(x, self.ffn, self.norm_2)


class WatchedModel(nn.Module):
    """Predict each next token; the kind of step, the mask, the softmax and the size of the embeddings can be chosen.

    Source: the original placement of norms is Vaswani et al. 2017, §3.1, arXiv 1706.03762; pre-norm is Xiong et al.
    2020, fig. 1b, arXiv 2002.04745. Positions are learned.
    """

    def __init__(
        self,
        vocab_size: int,
        max_length: int,
        num_layers: int = 2,
        kind: str = "pre-norm",
        d_model: int = 32,
        num_heads: int = 4,
        softmax: Softmax = masked_softmax,
        first_hidden: int = 1,
        embedding_factor: float = 1.0,
    ) -> None:
        """Build a model.

        Args:
            vocab_size: tokens that exist.
            max_length: positions that exist.
            num_layers: blocks.
            kind: where the norms stand, one of `STEPS`.
            d_model: features of a token.
            num_heads: heads of every attention.
            softmax: turns scores and a mask, True hides, into weights.
            first_hidden: distance from a token to the first later one that it may not see; 1 is right, 2 leaks.
            embedding_factor: multiplies the embeddings, whose entries are drawn with standard deviation 1.
        """
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, d_model), nn.Embedding(max_length, d_model)
        self.blocks = nn.ModuleList(WatchedBlock(d_model, num_heads, kind, softmax) for _ in range(num_layers))
        self.final_norm = nn.LayerNorm(d_model) if kind == "pre-norm" else nn.Identity()
        self.head = nn.Linear(d_model, vocab_size)
        self.first_hidden, self.embedding_factor = first_hidden, embedding_factor

    def forward(self, tokens: Int[Tensor, "batch sequence"]) -> Float[Tensor, "batch sequence vocab"]:
        """Return the logits of every place."""
        length = tokens.shape[-1]
        mask = torch.ones(length, length, dtype=torch.bool).triu(self.first_hidden)
        x = self.embedding_factor * (self.tokens(tokens) + self.positions.weight[:length])
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.final_norm(x))
