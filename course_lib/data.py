"""Small tasks, drawn fresh for every batch, that a transformer learns on a CPU while you watch."""

import torch
from jaxtyping import Int
from torch import Tensor

DIGITS = 10


def reversal_batch(
    batch: int, length: int, generator: torch.Generator | None = None
) -> tuple[Int[Tensor, "batch length"], Int[Tensor, "batch length"]]:
    """Draw random digit strings and the same strings reversed.

    The right digit for place i stands at place length - 1 - i, so a model must look at a place and not at a
    digit: without knowledge of positions the task cannot be solved.

    Raises:
        ValueError: `batch` or `length` is below 1.
    """
    for name, size in (("batch", batch), ("length", length)):
        if size < 1:
            raise ValueError(f"`{name}` must be at least 1, got {size}.")
    tokens = torch.randint(DIGITS, (batch, length), generator=generator)
    return tokens, tokens.flip(-1)
