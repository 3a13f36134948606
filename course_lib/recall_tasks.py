"""Two tasks about finding again what was seen: one needs two layers, the other two heads."""

import torch
from jaxtyping import Int
from torch import Tensor

UNSCORED = -100  # the label that the framework's cross-entropy passes over


def induction_batch(
    batch: int,
    length: int,
    vocab_size: int,
    span: int,
    generator: torch.Generator | None = None,
    distance: int | None = None,
) -> tuple[Int[Tensor, "batch length"], Int[Tensor, "batch length 1"]]:
    """Draw random tokens in which one span occurs twice, and the next token wherever the second copy tells it.

    All other places are unscored: random tokens cannot be foretold. The second copy starts a random distance
    after the first, so a place cannot know by counting where to look: it has to find its own token again.

    Args:
        batch: number of sequences.
        length: tokens of each.
        vocab_size: number of different tokens.
        span: tokens that are repeated; the first of them is not scored, for nothing announces it.
        generator: source of randomness.
        distance: from each token to its copy; random if not given. A fixed one can be solved by counting.

    Raises:
        ValueError: two copies do not fit into `length`, or `span` or `distance` is too small.
    """
    nearest = span if distance is None else distance
    if span < 2 or nearest < span or nearest + span > length:
        raise ValueError(
            f"`length` {length} must hold a span of at least 2 and its copy behind it: got span {span}, "
            f"distance {distance}."
        )
    tokens = torch.randint(vocab_size, (batch, length), generator=generator)
    if distance is None:
        gaps = torch.randint(span, length - span + 1, (batch,), generator=generator)
    else:
        gaps = torch.full((batch,), distance)
    free = length - span - gaps + 1  # places at which the first copy may start
    first = (torch.rand(batch, generator=generator) * free).long()
    places = first[:, None] + torch.arange(span)
    copies = places + gaps[:, None]
    tokens.scatter_(1, copies, tokens.gather(1, places))
    targets = torch.full_like(tokens, UNSCORED)
    targets.scatter_(1, copies[:, :-1], tokens.gather(1, copies[:, 1:]))
    return tokens, targets[..., None]


def two_lookups_batch(
    batch: int, length: int, vocab_size: int, offsets: tuple[int, int], generator: torch.Generator | None = None
) -> tuple[Int[Tensor, "batch length"], Int[Tensor, "batch length 2"]]:
    """Draw random tokens and, for every place, which tokens stand two given numbers of places before it.

    Where one of them would lie before the start, the place is unscored.

    Raises:
        ValueError: an offset is below 1 or leaves no place to score.
    """
    if min(offsets) < 1 or max(offsets) >= length:
        raise ValueError(f"`offsets` must lie in 1 … {length - 1}, got {offsets}.")
    tokens = torch.randint(vocab_size, (batch, length), generator=generator)
    targets = torch.stack([tokens.roll(offset, dims=1) for offset in offsets], dim=-1)
    targets[:, : max(offsets)] = UNSCORED
    return tokens, targets
