"""Turn programs, runs and plain values into bytes: a JSON header, then the arrays as `.npz`."""

from __future__ import annotations

import io
import json
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from autograder.counting import Counts
from autograder.program import Program, Run, Step
from autograder.values import NUMERIC_KINDS, Generator, Named, Opaque, Raised, Result

MAX_BYTES = 64 * 2**20
MAX_HEADER_BYTES = 4 * 2**20
MAX_ARRAYS = 20_000
MAX_INTEGER_BITS = 8_192  # Python itself refuses to read back an integer of more than 4,300 digits
LENGTH = struct.Struct(">I")
CARRIERS = {torch.bfloat16: torch.int16}  # NumPy has no bfloat16: its bits travel as integers
TENSOR_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
    )
}


class CodecError(ValueError):
    """The value cannot be sent, or the bytes are not what a faithful sender writes."""


def encode(value: Any) -> bytes:
    """Encode a plain value, a program or a run.

    Raises:
        CodecError: It holds something that is not plain, or it is too large.
    """
    arrays: list[np.ndarray] = []
    try:
        header = json.dumps(_Writer(arrays).node(value), allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise CodecError("the value is nested too deeply to be sent") from None
    size = len(header) + sum(array.nbytes for array in arrays)
    if len(header) > MAX_HEADER_BYTES or len(arrays) > MAX_ARRAYS or size > MAX_BYTES:
        raise CodecError(f"the value is too large to be sent ({size:,} bytes in {len(arrays):,} arrays)")
    body = io.BytesIO()
    if arrays:
        np.savez(body, allow_pickle=False, **{str(index): array for index, array in enumerate(arrays)})
    return LENGTH.pack(len(header)) + header + body.getvalue()


class _Writer:
    """Build the JSON tree and collect the arrays that it refers to by number."""

    def __init__(self, arrays: list[np.ndarray]):
        self.arrays = arrays

    def node(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        write = _WRITERS.get(kind)
        if write is None and isinstance(value, np.generic) and value.dtype.kind in NUMERIC_KINDS:
            write = _Writer.scalar
        if write is None:
            raise CodecError(f"{kind.__name__} is no plain value, so it cannot be sent")
        return write(self, value)

    def nodes(self, values: Any) -> list[Any]:
        return [self.node(value) for value in values]

    def pairs(self, values: Any) -> list[Any]:
        return [[self.node(name), self.node(value)] for name, value in values.items()]

    def integer(self, value: int) -> Any:
        if value.bit_length() > MAX_INTEGER_BITS:
            return ["opaque", f"int of {value.bit_length()} bits"]
        return value

    def real(self, value: float) -> Any:
        return value if math.isfinite(value) else ["float", repr(value)]

    def add(self, array: np.ndarray) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1

    def array(self, value: np.ndarray) -> Any:
        if value.dtype.kind not in NUMERIC_KINDS:
            raise CodecError(f"an array of {value.dtype} is no plain value, so it cannot be sent")
        return ["array", self.add(value)]

    def scalar(self, value: np.generic) -> Any:
        return ["scalar", self.add(np.asarray(value))]

    def tensor(self, value: torch.Tensor) -> Any:
        name = str(value.dtype).removeprefix("torch.")
        if name not in TENSOR_DTYPES or value.layout != torch.strided or value.is_meta:
            return ["opaque", f"Tensor of {name} ({value.layout}, {value.device})"]
        found = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
        found = found.view(CARRIERS[found.dtype]) if found.dtype in CARRIERS else found
        return ["tensor", self.add(found.numpy()), name]

    def step(self, step: Step) -> Any:
        return [
            *("step", step.action, step.name, self.nodes(step.args), self.pairs(step.kwargs), list(step.wrt)),
            *(step.becomes_subject, step.observe),
        ]

    def named(self, value: Named) -> Any:
        args = None if value.args is None else self.nodes(value.args)
        return ["named", value.name, args, None if value.state is None else self.pairs(value.state), value.part]

    def raised(self, value: Raised) -> Any:
        return ["raised", value.type_name, value.message, value.line, list(value.bases)]

    def run(self, run: Run) -> Any:
        counts = None if run.counts is None else self.counts(run.counts)
        return ["run", self.nodes(run.outcomes), list(run.changed), counts, self.pairs(run.calls)]

    def counts(self, counts: Counts) -> Any:
        return ["counts", counts.matrix_products, [list(shape) for shape in sorted(counts.shapes)]]


_WRITERS: dict[type, Callable[[_Writer, Any], Any]] = {
    int: _Writer.integer,
    float: _Writer.real,
    complex: lambda writer, value: ["complex", writer.real(value.real), writer.real(value.imag)],
    list: lambda writer, value: ["list", *writer.nodes(value)],
    tuple: lambda writer, value: ["tuple", *writer.nodes(value)],
    dict: lambda writer, value: ["dict", *writer.pairs(value)],
    np.ndarray: _Writer.array,
    torch.Tensor: _Writer.tensor,
    torch.nn.Parameter: _Writer.tensor,
    torch.dtype: lambda writer, value: ["dtype", str(value).removeprefix("torch.")],
    Opaque: lambda writer, value: ["opaque", value.type_name],
    Raised: _Writer.raised,
    Named: _Writer.named,
    Generator: lambda writer, value: ["generator", value.library, value.seed],
    Result: lambda writer, value: ["result", value.step],
    Step: _Writer.step,
    Program: lambda writer, value: ["program", writer.nodes(value.steps), value.counted],
    Counts: _Writer.counts,
    Run: _Writer.run,
}
