"""Draw the sizes, weights and sides of a cross-attention, so that no two axes can be taken for each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autograder.draw import Draw
from autograder.exercises.multi_head_attention.sizes import HEADS, layer_state
from autograder.values import Named

LAYER = "CrossAttention"  # the finished layer, by the name that programs know it by
LOUD = 30.0  # what stands at padding: enough to be seen wherever it leaks


@dataclass(frozen=True)
class Sizes:
    """Sizes that all differ, with `d_model` = `heads` times `d_head`."""

    batch: int
    target: int
    source: int
    d_head: int
    heads: int = HEADS

    @property
    def d_model(self) -> int:
        """Give the features of a token."""
        return self.heads * self.d_head


def sizes(draw: Draw) -> Sizes:
    """Draw sizes: 3 heads, and everything else different from 3 and from each other."""
    return Sizes(*(int(size) for size in draw.random.permutation([2, 4, 5, 7])))


def sides(draw: Draw, size: Sizes) -> tuple[Any, Any]:
    """Draw the decoder's tokens and the memory."""
    return draw.normal(size.batch, size.target, size.d_model), draw.normal(size.batch, size.source, size.d_model)


def padding(draw: Draw, size: Sizes) -> Any:
    """Draw a mask of the memory, True at padding: rows end at different places, and one has no padding."""
    lengths = draw.random.permutation([size.source, *draw.random.integers(1, size.source, size.batch - 1)])
    return draw.array(draw.random.permuted(lengths)[:, None] <= range(size.source))


def finished_layer(draw: Draw, size: Sizes) -> Named:
    """Give the finished layer with drawn weights, as an input."""
    return Named(LAYER, args=(size.d_model, size.heads), state=layer_state(draw, size.d_model))
