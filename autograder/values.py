"""Plain values: all that passes between a solution and its judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

MAX_DEPTH = 8
MAX_ITEMS = 10_000
MAX_TEXT = 300  # characters of a text or of an exception that a message repeats
MAX_BITS = 4_096  # of an int: no count is larger, and Python writes out no int beyond 4,300 digits
NUMERIC_KINDS = "biufc"


@dataclass(frozen=True)
class Opaque:
    """Stand for a value that is not plain; only its type's name is kept."""

    type_name: str


@dataclass(frozen=True)
class Raised:
    """Stand for an exception that a solution raised."""

    type_name: str
    message: str
    line: str | None = field(default=None, compare=False)
    bases: tuple[str, ...] = field(default=(), compare=False)

    def is_a(self, name: str) -> bool:
        """Tell whether the exception's type, or one of its bases, is called `name`."""
        return name == self.type_name or name in self.bases


@dataclass(frozen=True)
class Named:
    """Stand for a function or a module that both sides know by name.

    With `args`, the named thing is a factory: it is called with them, then loaded with `state`. With `part`, an
    attribute of what it made stands in its place, and all parts with the same name and args, within one run, are
    parts of one object.
    """

    name: str
    args: tuple[Any, ...] | None = None
    state: dict[str, torch.Tensor] | None = None
    part: str | None = None


@dataclass(frozen=True)
class Generator:
    """Stand for a random generator; each run gets a fresh one with this seed."""

    library: str  # "torch" or "numpy"
    seed: int


@dataclass(frozen=True)
class Result:
    """Stand for what an earlier step of the same program returned."""

    step: int


def plain(value: Any, depth: int = 0) -> Any:
    """Copy a value into plain data; whatever is not plain becomes `Opaque`."""
    kind: Any = type(value)
    if kind is int and value.bit_length() > MAX_BITS:
        return Opaque(f"int of {value.bit_length()} bits")
    if value is None or kind in (bool, int, float, complex, str, Raised, Opaque):
        return value
    if kind is np.ndarray:
        return np.array(value) if value.dtype.kind in NUMERIC_KINDS else Opaque(f"array of {value.dtype}")
    if kind in (torch.Tensor, torch.nn.Parameter):
        return _plain_tensor(value.detach())
    if isinstance(value, (list, tuple)):  # a named tuple is read as a tuple, whatever its own methods say
        base: Any = tuple if isinstance(value, tuple) else list
        if depth >= MAX_DEPTH or base.__len__(value) > MAX_ITEMS:
            return Opaque(f"{base.__name__} of {base.__len__(value)} items")
        return base(plain(item, depth + 1) for item in base.__iter__(value))
    if kind is dict:
        if depth >= MAX_DEPTH or len(value) > MAX_ITEMS:
            return Opaque(f"dict of {len(value)} items")
        return {str(name): plain(item, depth + 1) for name, item in value.items()}
    if isinstance(value, np.generic) and value.dtype.kind in NUMERIC_KINDS:
        return value
    return Opaque(kind.__name__)


def _plain_tensor(tensor: torch.Tensor) -> Any:
    """Copy a tensor whose numbers can be read; others (sparse, quantized, meta, nested) become `Opaque`."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized or tensor.is_meta:
        form = "nested" if tensor.is_nested else "quantized" if tensor.is_quantized else str(tensor.layout)[6:]
        return Opaque(f"{'meta' if tensor.is_meta else form} tensor")
    return tensor.cpu().resolve_conj().resolve_neg().clone()


def shortened(text: str) -> str:
    """Put a text on one line and cut it where it gets long."""
    text = " ".join(text[: 2 * MAX_TEXT].split())
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"


def describe(value: Any) -> str:
    """Say what a plain value is, in a few words."""
    if value is None:
        return "None"
    if isinstance(value, Raised):
        return f"{value.type_name}: {value.message}" if value.message else value.type_name
    if isinstance(value, Opaque):
        return f"an object of type {value.type_name}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)} and dtype {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, np.generic):
        return f"the NumPy scalar {value!s} (dtype {value.dtype})"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, dict):
        return f"a dict with the keys {shortened(', '.join(sorted(value)))}"
    article = "an" if type(value) is int else "a" if type(value) is not str else "the"
    name = {"bool": "boolean", "str": "text", "float": "float", "int": "int"}.get(type(value).__name__, "number")
    return f"{article} {name} ({shortened(repr(value))})"
