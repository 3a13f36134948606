"""Watch an online softmax at work: what one query remembers after each tile of keys."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.efficient.fitting import require_count


@dataclass(frozen=True)
class TileState:
    """What a query knows after the keys from `start` up to `stop`: three numbers and one vector."""

    start: int
    stop: int
    largest: float  # of all scores so far
    shrink: float  # what the sums before this tile were multiplied by
    total: float  # Σ exp(score − largest)
    output: tuple[float, ...]  # the attention output over the keys so far


def tile_states(
    scores: Float[Tensor, " key"], value: Float[Tensor, "key d_v"], block_size: int
) -> tuple[TileState, ...]:
    """Sweep over one query's scores in tiles and note the running maximum, sum and output after each.

    Raises:
        TypeError: `block_size` is not an int.
        ValueError: `block_size` is below 1.

    Source: Milakov & Gimelshein 2018, Algorithm 3, arXiv 1805.02867.
    """
    require_count("block_size", block_size)
    largest, total, weighted = -math.inf, torch.zeros((), dtype=scores.dtype), torch.zeros_like(value[0])
    states = []
    for start in range(0, len(scores), block_size):
        tile = scores[start : start + block_size]
        rising = max(largest, tile.max().item())
        shrink, weights = math.exp(largest - rising), (tile - rising).exp()
        total = total * shrink + weights.sum()
        weighted = weighted * shrink + weights @ value[start : start + block_size]
        largest = rising
        output = tuple((weighted / total).tolist())
        states.append(TileState(start, start + len(tile), largest, shrink, total.item(), output))
    return tuple(states)
