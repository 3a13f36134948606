"""A task of distance: name the first token of a sequence when its last one has been read.

Whatever is learned about the first token has to travel the whole way: through every state of a recurrent network,
and in one step through attention.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.block import TransformerBlock
from course_lib.models.recurrent import LAYERS, recurrent_layer

KINDS = (*LAYERS, "attention")
NUM_HEADS = 2
WIDENING = 4  # d_ff over d_model, as usual


def first_token_batch(
    batch: int, length: int, choices: int, generator: torch.Generator | None = None
) -> tuple[Int[Tensor, "batch length"], Int[Tensor, " batch"]]:
    """Draw sequences and their first tokens; the first is one of `choices`, the rest are as many other tokens.

    Raises:
        ValueError: `length` leaves no room for a second token.
    """
    if length < 2:
        raise ValueError(f"`length` must be at least 2, got {length}.")
    tokens = torch.randint(choices, 2 * choices, (batch, length), generator=generator)
    first = torch.randint(choices, (batch,), generator=generator)
    tokens[:, 0] = first
    return tokens, first


class FirstTokenReader(nn.Module):
    """Name the first token at the last place, through one recurrent layer or one transformer block."""

    def __init__(self, kind: str, choices: int, d_model: int) -> None:
        """Create the model.

        Raises:
            ValueError: `kind` is none of "rnn", "gru", "lstm" and "attention".
        """
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"`kind` must be one of {', '.join(map(repr, KINDS))}, got {kind!r}.")
        self.embedding = nn.Embedding(2 * choices, d_model)
        self.layer = (
            TransformerBlock(d_model, NUM_HEADS, WIDENING * d_model)
            if kind == "attention"
            else recurrent_layer(kind, d_model, d_model)
        )
        self.head = nn.Linear(d_model, choices)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch choices"]:
        """Return the logits of the first token."""
        return self.read(self.embedding(tokens))

    def read(self, x: Float[Tensor, "batch length d_model"]) -> Float[Tensor, "batch choices"]:
        """Return the logits for tokens that are vectors already."""
        found = self.layer(x)
        states = found[0] if isinstance(found, tuple) else found
        return self.head(states[:, -1])

    def influence(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, " length"]:
        """Return how strongly the answer's loss pulls at every place: mean length of its gradient by that vector."""
        x = self.embedding(tokens).detach().requires_grad_()
        loss = nn.functional.cross_entropy(self.read(x), tokens[:, 0], reduction="sum")
        (gradient,) = torch.autograd.grad(loss, x)
        return gradient.norm(dim=-1).mean(dim=0)
