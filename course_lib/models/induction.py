"""A model of attention and nothing else, small enough to see what every head does."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.multi_head import MultiHeadAttention


class AttentionOnly(nn.Module):
    """Read tokens through layers of causal multi-head attention and name tokens at every place.

    x ← x + attention(norm(x)) in each layer; logits from norm(x). There is no feed-forward part, so whatever the
    model knows of other places a head has fetched.

    Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", transformer-circuits.pub. The
    article adds positions to queries and keys only and leaves the norms out; here positions are learned and
    added to the input.
    """

    def __init__(
        self, vocab_size: int, length: int, d_model: int, num_heads: int, num_layers: int, answers: int = 1
    ) -> None:
        """Create the layers; `answers` is the number of tokens to name at every place."""
        super().__init__()
        self.answers = answers
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(length, d_model)
        self.layers = nn.ModuleList(MultiHeadAttention(d_model, num_heads) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(num_layers + 1))
        self.readout = nn.Linear(d_model, answers * vocab_size)

    def forward(
        self, tokens: Int[Tensor, "batch sequence"]
    ) -> tuple[Float[Tensor, "batch sequence answers vocab"], list[Float[Tensor, "batch heads sequence sequence"]]]:
        """Return the logits of every place and the weights of every layer.

        Raises:
            ValueError: there are more tokens than positions.
        """
        length, longest = tokens.shape[-1], self.positions.num_embeddings
        if length > longest:
            raise ValueError(f"`tokens` has {length} places; the model knows only {longest}.")
        x = self.tokens(tokens) + self.positions.weight[:length]
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        maps = []
        for layer, norm in zip(self.layers, self.norms, strict=False):
            normed = norm(x)
            found, weights = layer(normed, normed, normed, future)
            x = x + found
            maps.append(weights)
        return self.readout(self.norms[-1](x)).unflatten(-1, (self.answers, -1)), maps
