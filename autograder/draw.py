"""Draw the inputs of a case from a seed."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import torch

from autograder.values import Generator

GAIN_SPREAD = 0.3  # drawn weights stay near the scale of a trained layer, far from zero and from one


class Draw:
    """A seeded source of arrays, in NumPy or PyTorch as the exercise asks."""

    def __init__(self, seed: int, case: str, library: str, dtype: str):
        self.random = np.random.default_rng([seed, zlib.crc32(case.encode())])
        self.library = library
        self.dtype = dtype

    def array(self, values: Any, dtype: str | None = None) -> Any:
        """Make an array of the exercise's library; floats take the case's dtype."""
        found = np.asarray(values)
        if dtype is None and found.dtype.kind == "f":
            dtype = self.dtype
        if self.library == "torch":
            tensor = torch.from_numpy(np.array(found))
            return tensor.to(getattr(torch, dtype)) if dtype else tensor
        return found.astype(dtype) if dtype else np.array(found)

    def normal(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> Any:
        """Draw independent normal entries."""
        return self.array(mean + scale * self.random.standard_normal(shape))

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Any:
        """Draw independent uniform entries."""
        return self.array(self.random.uniform(low, high, shape))

    def integers(self, low: int, high: int, *shape: int) -> Any:
        """Draw integers from `low` up to, not including, `high`."""
        return self.array(self.random.integers(low, high, shape))

    def sizes(self, count: int, low: int = 2, high: int = 8) -> list[int]:
        """Draw sizes that all differ, from `low` to `high`."""
        return [int(size) for size in self.random.choice(np.arange(low, high + 1), count, replace=False)]

    def integer(self, low: int, high: int) -> int:
        """Draw one integer from `low` to `high`."""
        return int(self.random.integers(low, high + 1))

    def number(self, low: float, high: float) -> float:
        """Draw one number between `low` and `high`."""
        return float(self.random.uniform(low, high))

    def permutation(self, length: int) -> Any:
        """Draw an order that moves at least one place."""
        order = self.random.permutation(length)
        return self.array(np.roll(order, 1) if np.array_equal(order, np.arange(length)) else order)

    def mask(self, *shape: int, share: float = 0.4) -> Any:
        """Draw a mask (True hides) in which every row hides some keys and shows some."""
        hidden = self.random.random(shape) < share
        first = self.random.integers(0, shape[-1], shape[:-1])
        np.put_along_axis(hidden, first[..., None], True, -1)
        np.put_along_axis(hidden, ((first + 1) % shape[-1])[..., None], False, -1)
        return self.array(hidden)

    def state(self, **shapes: tuple[int, ...]) -> dict[str, Any]:
        """Draw weights by name; write `__` for the dots of a name."""
        return {
            name.replace("__", "."): self.normal(*shape, scale=GAIN_SPREAD if len(shape) > 1 else 1.0)
            for name, shape in shapes.items()
        }

    def generator(self) -> Generator:
        """Draw a seeded generator; each run of the program gets a fresh one."""
        return Generator(self.library, self.integer(0, 2**31 - 1))
