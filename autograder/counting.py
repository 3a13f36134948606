"""Count what a solution costs: matrix products and the tensors that it allocates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from course_lib.allocation import AllocationCounter

PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "addbmm", "dot", "mv", "addmv", "convolution", "_scaled_mm"}


@dataclass(frozen=True)
class Counts:
    """How many matrix products ran, and the shapes under which new memory was seen."""

    matrix_products: int
    shapes: frozenset[tuple[int, ...]]

    def allocated_ending_in(self, *axes: int) -> bool:
        """Tell whether a tensor with these last axes was allocated."""
        return any(shape[-len(axes) :] == axes for shape in self.shapes)

    @property
    def largest(self) -> tuple[int, ...]:
        """Give the shape of the largest tensor that was allocated."""
        return max(self.shapes, key=lambda shape: (torch.Size(shape).numel(), shape), default=())


class Counter(AllocationCounter):
    """Count while it is entered; it may be entered several times."""

    def __init__(self) -> None:
        super().__init__()
        self.products = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation and note what it made."""
        self.products += func.overloadpacket.__name__ in PRODUCTS
        return super().__torch_dispatch__(func, types, args, kwargs)

    def counts(self) -> Counts:
        """Give what was counted so far."""
        return Counts(self.products, frozenset(self.shapes + self.view_shapes))


@cache
def warm_up() -> None:
    """Count nothing once: the first count in a process loads much of PyTorch, which is not the solution's time."""
    with Counter():
        torch.dot(torch.ones(1), torch.ones(1))
