"""Follow what PyTorch allocates and frees, the same way on every device, without looking at the machine.

Each PyTorch operation is watched as it returns. A result in new memory adds its bytes, which are subtracted
when the last tensor on that memory is gone, autograd's own references included. A view, an in-place operation
and whatever existed before the call add nothing. On the meta device no memory is used at all, so sizes that
fit nowhere can be counted too.

What an operation needs inside its kernel and frees before it returns stays unseen, as does the rounding of a
device's allocator. One call can also run different operations on different devices:
`F.scaled_dot_product_attention` keeps its scores inside one kernel on the CPU, and spells them out on meta.
"""

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class AllocationCounter(TorchDispatchMode):
    """Follow what PyTorch allocates and frees inside a `with` block.

    `shapes` lists the shape of each result in new memory; `view_shapes` the shapes under which the whole of
    such memory was seen again. `alive` and `peak` are bytes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.alive = 0
        self.peak = 0
        self.largest_tensor = 0
        self.largest_shape: tuple[int, ...] = ()
        self.shapes: list[tuple[int, ...]] = []
        self.view_shapes: list[tuple[int, ...]] = []
        self._sizes: dict[int, int] = {}  # bytes of each storage that was allocated in the block and is alive

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        # torch.tensor allocates unseen, and shows the result to this one operation, which returns its input.
        is_new = func is torch.ops.aten.lift_fresh.default
        given = () if is_new else (args, kwargs)
        known = {part.untyped_storage()._cdata for part in strided_parts(given)}
        result = func(*args, **kwargs)
        for part in strided_parts((result,)):
            self._see(part, known)
        return result

    def owns(self, storage: torch.UntypedStorage) -> bool:
        """Say whether the block allocated this memory."""
        return storage._cdata in self._sizes

    def _see(self, tensor: torch.Tensor, known: set[int]) -> None:
        storage = tensor.untyped_storage()
        key, size, shape = storage._cdata, storage.nbytes(), tuple(tensor.shape)
        if key in self._sizes:
            if size != self._sizes[key]:  # resized in place, as by an `out=` argument that was too small
                self._add(key, size - self._sizes[key], size, shape)
            elif tensor.numel() * tensor.itemsize == size:
                self.view_shapes.append(shape)
        elif key not in known:
            # The storage lives as long as any tensor on it, Python's or autograd's; its end frees the memory.
            weakref.finalize(storage, self._forget, key).atexit = False
            self._add(key, size, size, shape)

    def _add(self, key: int, growth: int, size: int, shape: tuple[int, ...]) -> None:
        self._sizes[key] = size
        self.shapes.append(shape)
        self.alive += growth
        self.peak = max(self.peak, self.alive)
        if size > self.largest_tensor:
            self.largest_tensor, self.largest_shape = size, shape

    def _forget(self, key: int) -> None:
        self.alive -= self._sizes.pop(key)


def strided_parts(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested lists and dicts that have memory of their own; a sparse one has several."""
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
        elif value.layout is torch.sparse_coo:
            yield from (value._indices(), value._values())
        elif value.layout in (torch.sparse_csr, torch.sparse_bsr):
            yield from (value.crow_indices(), value.col_indices(), value.values())
        elif value.layout in (torch.sparse_csc, torch.sparse_bsc):
            yield from (value.ccol_indices(), value.row_indices(), value.values())
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from strided_parts(part)
    elif isinstance(value, dict):
        yield from strided_parts(tuple(value.values()))
