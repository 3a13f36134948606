"""Draw the sizes of a layer with several heads, so that no two axes can be taken for each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autograder.draw import Draw

HEADS = 3  # with one head, or as many as features of a head, most faults cannot be seen


@dataclass(frozen=True)
class Sizes:
    """Sizes that all differ, with `d_model` = `heads` times `d_head`."""

    batch: int
    heads: int
    query: int
    key: int
    d_head: int

    @property
    def d_model(self) -> int:
        """Give the features of a token."""
        return self.heads * self.d_head


def sizes(draw: Draw) -> Sizes:
    """Draw sizes: 3 heads, and everything else different from 3 and from each other."""
    batch, query, key, d_head = (int(size) for size in draw.random.permutation([2, 4, 5, 7]))
    return Sizes(batch, HEADS, query, key, d_head)


def layer_state(draw: Draw, d_model: int, bias: bool = True) -> dict[str, Any]:
    """Draw the weights of a `MultiHeadAttention` by their names."""
    names = ("w_q", "w_k", "w_v", "w_o")
    shapes: dict[str, tuple[int, ...]] = {f"{name}__weight": (d_model, d_model) for name in names}
    if bias:
        shapes |= {f"{name}__bias": (d_model,) for name in names}
    return draw.state(**shapes)
