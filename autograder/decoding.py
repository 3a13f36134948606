"""Rebuild programs, runs and plain values from bytes that a liar may have written.

Nothing is unpickled, nothing is allocated beyond the bytes that came, every type is checked, and whatever is not
exactly what `autograder.encoding` writes is refused with one error, `CodecError`.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from autograder.counting import Counts
from autograder.encoding import (
    CARRIERS,
    LENGTH,
    MAX_ARRAYS,
    MAX_HEADER_BYTES,
    MAX_INTEGER_BITS,
    TENSOR_DTYPES,
    CodecError,
)
from autograder.program import Program, Run, Step
from autograder.values import NUMERIC_KINDS, Generator, Named, Opaque, Raised, Result

MAX_DEPTH = 40
MAX_AXES = 32
WIDEST_ITEM = 32  # bytes of a complex long double
ACTIONS = {"call", "method", "load", "read", "count", "see", "gradients"}


def decode(data: bytes) -> Any:
    """Decode what `encode` wrote.

    Raises:
        CodecError: The bytes are anything else.
    """
    try:
        return _decode(data)
    except CodecError:
        raise
    except Exception as error:  # whatever a hostile sender provokes is a malformed message, no crash of the reader
        raise CodecError(f"malformed message ({type(error).__name__})") from None


def _decode(data: bytes) -> Any:
    if len(data) < LENGTH.size:
        raise CodecError("the message is cut short")
    (length,) = LENGTH.unpack_from(data)
    start = LENGTH.size + length
    if length > MAX_HEADER_BYTES or len(data) < start:
        raise CodecError("the message is cut short or its header is too long")
    header = json.loads(data[LENGTH.size : start], parse_constant=_refuse_constant)
    reader = _Reader(_read_arrays(data[start:]))
    value = reader.node(header, 0)
    if reader.unused:
        raise CodecError("the message carries arrays that nothing refers to")
    return value


def _refuse_constant(name: str) -> Any:
    raise CodecError(f"{name} is no JSON")


def _read_arrays(body: bytes) -> list[np.ndarray]:
    """Read the members of an `.npz`, without trusting a single size that it claims."""
    if not body:
        return []
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        members = archive.infolist()
        if len(members) > MAX_ARRAYS or [item.filename for item in members] != [
            f"{index}.npy" for index in range(len(members))
        ]:
            raise CodecError("the arrays are not numbered as they should be")
        if any(item.compress_type != zipfile.ZIP_STORED or item.file_size != item.compress_size for item in members):
            raise CodecError("the arrays are compressed")
        if sum(item.file_size for item in members) > len(body):
            raise CodecError("the arrays claim more bytes than were sent")
        return [_read_array(archive.read(item)) for item in members]


def _read_array(data: bytes) -> np.ndarray:
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise CodecError("an array has an unknown format version")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject or dtype.kind not in NUMERIC_KINDS or dtype.subdtype or not 0 < dtype.itemsize <= WIDEST_ITEM:
        raise CodecError(f"an array has the dtype {str(dtype)[:40]}")
    if len(shape) > MAX_AXES or any(type(size) is not int or size < 0 for size in shape):
        raise CodecError("an array has an impossible shape")
    rest = data[stream.tell() :]
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise CodecError("an array's shape does not fit its bytes")
    return np.ndarray(shape, dtype, buffer=bytearray(rest), order="F" if fortran else "C")


class _Reader:
    """Rebuild values from a JSON tree; each array may be referred to once."""

    def __init__(self, arrays: list[np.ndarray]):
        self.unused = dict(enumerate(arrays))

    def node(self, node: Any, depth: int) -> Any:
        if node is None or type(node) in (bool, str, float):
            return node
        if type(node) is int:
            return _expect(node, node.bit_length() <= MAX_INTEGER_BITS)
        if type(node) is not list or not node or depth >= MAX_DEPTH:
            raise CodecError(f"unexpected {type(node).__name__} in the message")
        tag = _typed(node[0], str)
        read = _READERS.get(tag)
        if read is None:
            raise CodecError(f"unknown kind of value {tag[:40]!r}")
        return read(self, node[1:], depth + 1)

    def nodes(self, nodes: Any, depth: int) -> tuple[Any, ...]:
        return tuple(self.node(node, depth) for node in _typed(nodes, list))

    def pairs(self, pairs: Any, depth: int, keys: tuple[type, ...] = (str,)) -> dict[Any, Any]:
        found = {}
        for pair in _typed(pairs, list):
            name, value = _typed(pair, list)
            key = self.node(name, depth)
            found[_expect(key, key is None or type(key) in keys)] = self.node(value, depth)
        return _expect(found, len(found) == len(pairs))

    def mapping(self, pairs: list[Any], depth: int) -> Any:
        return self.pairs(pairs, depth, (str, int, float, bool))

    def real(self, fields: list[Any], depth: int) -> float:
        (text,) = fields
        return float(_expect(text, text in ("nan", "inf", "-inf")))

    def complex(self, fields: list[Any], depth: int) -> complex:
        parts = [_typed(self.node(part, depth), float) for part in fields]
        return complex(*_expect(parts, len(parts) == 2))

    def array(self, fields: list[Any], depth: int) -> np.ndarray:
        (index,) = fields
        return self.unused.pop(_typed(index, int))

    def scalar(self, fields: list[Any], depth: int) -> Any:
        array = self.array(fields, depth)
        return _expect(array, array.ndim == 0)[()]

    def tensor(self, fields: list[Any], depth: int) -> torch.Tensor:
        index, name = fields
        array, dtype = self.array([index], depth), TENSOR_DTYPES[_typed(name, str)]
        array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        tensor = torch.from_numpy(array)
        _expect(tensor, tensor.dtype == CARRIERS.get(dtype, dtype))
        return tensor.view(dtype) if dtype in CARRIERS else tensor

    def dtype(self, fields: list[Any], depth: int) -> torch.dtype:
        (name,) = fields
        return TENSOR_DTYPES[_typed(name, str)]

    def opaque(self, fields: list[Any], depth: int) -> Opaque:
        (name,) = fields
        return Opaque(_typed(name, str))

    def raised(self, fields: list[Any], depth: int) -> Raised:
        name, message, line, bases = fields
        line = None if line is None else _typed(line, str)
        return Raised(_typed(name, str), _typed(message, str), line, _all(bases, str))

    def named(self, fields: list[Any], depth: int) -> Named:
        name, args, state, part = fields
        args = None if args is None else self.nodes(args, depth)
        state = None if state is None else self.pairs(state, depth)
        _expect(state, all(isinstance(value, torch.Tensor) for value in (state or {}).values()))
        part = None if part is None else _typed(part, str)
        return Named(_typed(name, str), args, state, part)

    def generator(self, fields: list[Any], depth: int) -> Generator:
        library, seed = fields
        return Generator(
            _expect(library, library in ("torch", "numpy")), _expect(seed, type(seed) is int and seed >= 0)
        )

    def result(self, fields: list[Any], depth: int) -> Result:
        (step,) = fields
        return Result(_typed(step, int))

    def step(self, fields: list[Any], depth: int) -> Step:
        action, name, args, kwargs, wrt, becomes_subject, observe = fields
        _expect(action, action in ACTIONS)
        return Step(
            action,
            _typed(name, str),
            self.nodes(args, depth),
            self.pairs(kwargs, depth),
            _all(wrt, int, str),
            _typed(becomes_subject, bool),
            _typed(observe, bool),
        )

    def program(self, fields: list[Any], depth: int) -> Program:
        steps, counted = fields
        found = self.nodes(steps, depth)
        return Program(_expect(found, all(type(step) is Step for step in found)), _typed(counted, bool))

    def counts(self, fields: list[Any], depth: int) -> Counts:
        products, shapes = fields
        return Counts(_typed(products, int), frozenset(_all(shape, int) for shape in _typed(shapes, list)))

    def run(self, fields: list[Any], depth: int) -> Run:
        outcomes, changed, counts, calls = fields
        found = None if counts is None else self.node(counts, depth)
        _expect(found, found is None or type(found) is Counts)
        calls = self.pairs(calls, depth)
        _expect(calls, all(type(count) is int for count in calls.values()))
        return Run(self.nodes(outcomes, depth), _all(changed, str), found, calls)


_READERS: dict[str, Callable[[_Reader, list[Any], int], Any]] = {
    "list": lambda reader, fields, depth: list(reader.nodes(fields, depth)),
    "tuple": _Reader.nodes,
    "dict": _Reader.mapping,
    "float": _Reader.real,
    "complex": _Reader.complex,
    "array": _Reader.array,
    "scalar": _Reader.scalar,
    "tensor": _Reader.tensor,
    "dtype": _Reader.dtype,
    "opaque": _Reader.opaque,
    "raised": _Reader.raised,
    "named": _Reader.named,
    "generator": _Reader.generator,
    "result": _Reader.result,
    "step": _Reader.step,
    "program": _Reader.program,
    "counts": _Reader.counts,
    "run": _Reader.run,
}


def _expect(value: Any, holds: bool) -> Any:
    if not holds:
        raise CodecError(f"unexpected {type(value).__name__} in the message")
    return value


def _typed(value: Any, kind: type) -> Any:
    return _expect(value, type(value) is kind)


def _all(values: Any, *kinds: type) -> tuple[Any, ...]:
    return tuple(_expect(value, type(value) in kinds) for value in _typed(values, list))
