"""Count the bytes that a function allocates, the same way on every device, without looking at the machine.

Tensors are counted by watching PyTorch's operations; `course_lib.allocation` says how, and what stays unseen:
above all what an operation needs inside its kernel. NumPy's arrays are counted by Python's own `tracemalloc`.
"""

import tracemalloc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.autograd.graph import saved_tensors_hooks

from course_lib.allocation import AllocationCounter, strided_parts

KIBIBYTE = 1024
UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
FOUR_DIGITS = 999.5  # from here on a number is rounded to a whole one


@dataclass(frozen=True)
class PeakMemory:
    """What a call allocated: the most bytes alive at once, and its largest single tensor."""

    bytes: int
    largest_tensor: int
    largest_shape: tuple[int, ...]
    tensors_allocated: int

    def text(self) -> str:
        """Tell the peak in one line."""
        if self.tensors_allocated == 0:
            return "no tensor allocated"
        shape = " × ".join(map(str, self.largest_shape)) or "a single number"
        return (
            f"peak {bytes_text(self.bytes)}; largest of {self.tensors_allocated} tensors: {shape}, "
            f"{bytes_text(self.largest_tensor)}"
        )

    __str__ = text


def peak_bytes(function: Callable[..., object], *args: Any, **kwargs: Any) -> PeakMemory:
    """Count the most bytes of tensors that a call has alive at once, beyond what existed before it.

    Inputs, parameters and anything else made before the call are not counted; the result is.

    Raises:
        TypeError: the call works on NumPy arrays alone, which `numpy_peak_bytes` counts.
    """
    with AllocationCounter() as counter:
        result = function(*args, **kwargs)
    if not counter.shapes and any(isinstance(one, np.ndarray) for one in (result, *args, *kwargs.values())):
        raise TypeError("peak_bytes saw NumPy arrays and no tensor; count this function with numpy_peak_bytes.")
    return PeakMemory(counter.peak, counter.largest_tensor, counter.largest_shape, len(counter.shapes))


def allocated_shapes(
    function: Callable[..., object], *args: Any, views: bool = False, **kwargs: Any
) -> list[tuple[int, ...]]:
    """List the shape of every tensor that a call allocates, in order, freed ones included.

    Args:
        function: what to call.
        *args: its arguments.
        views: also list the shapes under which the whole of such a tensor was seen again, so that a flat
            tensor of n·n numbers does not hide the square that it is viewed as.
        **kwargs: its keyword arguments.
    """
    with AllocationCounter() as counter:
        function(*args, **kwargs)
    return counter.shapes + (counter.view_shapes if views else [])


def saved_bytes(function: Callable[..., object], *args: Any, include_existing: bool = False, **kwargs: Any) -> int:
    """Count the bytes that autograd keeps for the backward pass when a call has returned, each memory once.

    Args:
        function: what to call: a forward pass, whose result is held while the bytes are counted.
        *args: its arguments.
        include_existing: also count saved tensors that existed before the call: inputs, parameters.
        **kwargs: its keyword arguments.
    """
    seen: list[tuple[weakref.ref, bool]] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        for part in strided_parts((tensor,)):
            storage = part.untyped_storage()
            seen.append((weakref.ref(storage), counter.owns(storage)))
        return tensor.detach()  # a hook that returns its own input would make a cycle that nothing frees

    with AllocationCounter() as counter, saved_tensors_hooks(pack, lambda saved: saved):
        result = function(*args, **kwargs)
        kept = [(ref(), is_new) for ref, is_new in seen]
    del result
    sizes = {
        storage._cdata: storage.nbytes()
        for storage, is_new in kept
        if storage is not None and (is_new or include_existing)
    }
    return sum(sizes.values())


def numpy_peak_bytes(function: Callable[..., object], *args: Any, **kwargs: Any) -> int:
    """Count the most bytes that a NumPy function has allocated at once, its result included and inputs not.

    Python's `tracemalloc` counts, to which NumPy reports each array; a few kilobytes of Python's own objects
    come along, so count arrays that are much larger. PyTorch's tensors do not appear in it.
    """
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        function(*args, **kwargs)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        if not was_tracing:
            tracemalloc.stop()
    return peak - before


def bytes_text(count: int | float) -> str:
    """Write a number of bytes with three digits and the binary unit that suits it: `1.5 MiB`."""
    power = 0
    while power < len(UNITS) - 1 and abs(count) >= KIBIBYTE:
        count, power = count / KIBIBYTE, power + 1
    digits = f"{count:.3g}" if abs(count) < FOUR_DIGITS else f"{count:,.0f}"
    return f"{digits} {UNITS[power]}"
