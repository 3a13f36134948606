"""Classify whole sequences: read every token in its place, average what was read, name a class."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.block import TransformerBlock
from course_lib.padded_batches import masked_mean
from course_lib.positions import sinusoidal_encoding

WIDENING = 4  # the feed-forward network's width over the model's, as in Vaswani et al. 2017, §3.3


class TransformerClassifier(nn.Module):
    """Sort sequences of different lengths into classes, with their padding hidden twice.

    logits = head(mean of the visible tokens of norm(blocks(embedding(tokens) + positions))). The mask keeps
    padding out of the attention and out of the mean. Positions are sinusoids, so any length is welcome.

    Source: the blocks are those of Vaswani et al. 2017, §3.1, arXiv 1706.03762, in pre-norm form with GELU. The
    paper classifies nothing; here a mean over the tokens does, where BERT reads one special token.
    """

    def __init__(self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, num_classes: int) -> None:
        """Create embedding, blocks and head.

        Raises:
            ValueError: `num_heads` does not divide `d_model`, or `d_model` is odd.
        """
        super().__init__()
        if d_model % 2:
            raise ValueError(f"`d_model` must be even, for sinusoids come in pairs; got {d_model}.")
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, WIDENING * d_model, norm_first=True, activation="gelu")
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, num_classes)

    def encode(
        self, tokens: Int[Tensor, "batch token"], mask: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token d_model"]:
        """Read every token in its place among the others; where `mask` is True a token is seen by none."""
        x = self.embedding(tokens)
        places = torch.from_numpy(sinusoidal_encoding(tokens.shape[1], x.shape[-1]))
        x = x + places.to(dtype=x.dtype, device=x.device)
        hidden = None if mask is None else mask[:, None, None, :]
        for block in self.blocks:
            x = block(x, hidden)
        return self.norm(x)

    def forward(
        self, tokens: Int[Tensor, "batch token"], mask: Bool[Tensor, "batch token"]
    ) -> Float[Tensor, "batch classes"]:
        """Return the logits of every sequence; True in `mask` marks padding."""
        return self.head(masked_mean(self.encode(tokens, mask), mask))
