"""The codec gives back what it was given, and survives whatever else it is given."""

import io
import json
import math
import pickle
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from autograder.codec import CodecError, decode, encode
from autograder.counting import Counts
from autograder.encoding import LENGTH, MAX_HEADER_BYTES, TENSOR_DTYPES
from autograder.exercise import all_exercises
from autograder.judge import run_here
from autograder.program import Program, Run, build
from autograder.values import Generator, Named, Opaque, Raised, Result
from autograder.verdict import Heard

DEEP = 200  # levels of nesting: far more than a value may have
FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ARRAYS = [
    np.zeros(0),
    np.zeros((0, 3), np.float32),
    np.array(5.0),
    np.arange(12).reshape(3, 4).T,
    np.arange(24, dtype=">f8").reshape(2, 3, 4)[:, ::2],
    np.array([True, False]),
    np.array([1 + 2j, complex("nan")]),
    np.array([np.nan, np.inf, -0.0], np.float16),
    np.array([1.5], np.longdouble),
]


def alike(left, right) -> bool:
    """Tell whether two values are the same, types included: arrays to the last bit, a float but for NaN's sign."""
    if type(left) is not type(right):
        return False
    if isinstance(left, (np.ndarray, np.generic)):
        return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
    if isinstance(left, torch.Tensor):
        bits = [
            item.contiguous().view(torch.uint8) if item.ndim else item.reshape(1).view(torch.uint8)
            for item in (left, right)
        ]
        return left.dtype == right.dtype and left.shape == right.shape and torch.equal(*bits)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(alike(left[name], right[name]) for name in left)
    if isinstance(left, float):
        both_nan = left != left and right != right  # JSON has one NaN, so its sign is not kept
        return both_nan or (left == right and math.copysign(1, left) == math.copysign(1, right))
    if hasattr(left, "__dataclass_fields__"):
        return all(alike(getattr(left, name), getattr(right, name)) for name in left.__dataclass_fields__)
    return left == right


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers(allow_nan=False)
    | st.text()
    | st.sampled_from(ARRAYS)
    | st.sampled_from([np.float32(1.5), np.int8(-3), np.bool_(True), torch.float16, Opaque("x"), Result(2)]),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@FUZZ
@given(plain_values)
@example(float("nan"))
@example([-0.0, float("-inf"), True, 1, 1.0, "\ud800", 10**1000])
def test_every_plain_value_comes_back_the_same(value) -> None:
    assert alike(decode(encode(value)), value)


@pytest.mark.parametrize("dtype", TENSOR_DTYPES.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (3, 4)], ids=str)
def test_a_tensor_of_every_dtype_comes_back_the_same(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = (torch.arange(math.prod(shape)).reshape(shape) - 1).to(dtype)
    assert alike(decode(encode(tensor)), tensor)


def test_a_tensor_that_shares_memory_needs_gradients_or_is_turned_comes_back_as_plain_data() -> None:
    tensor = torch.arange(6.0, requires_grad=True).reshape(2, 3).T
    found = decode(encode(tensor))
    assert torch.equal(found, tensor.detach())
    assert not found.requires_grad
    found += 1
    assert torch.equal(decode(encode(torch.conj(torch.tensor([1j])))), torch.tensor([-1j]))


@pytest.mark.parametrize(
    "tensor", [torch.eye(2).to_sparse(), torch.empty(3, device="meta"), torch.ones(2).to(torch.float8_e5m2)], ids=str
)
def test_a_tensor_that_cannot_travel_is_named_instead(tensor: torch.Tensor) -> None:
    assert isinstance(decode(encode(tensor)), Opaque)


def test_every_field_of_a_program_and_of_a_run_comes_back() -> None:
    program = (
        build(3, mode="x")
        .load({"weight": torch.eye(2)})
        .call(Named("layer", (1, 2), {"w": torch.ones(1)}), Named("f"), mask=Named("device", (0.5,), part="clock"))
        .method("step", Generator("torch", 7), Result(0), observe=False, key={"a": [1, (2,)]})
        .read("weight.shape")
        .gradients(np.ones(2), wrt=(0, "bias"))
        .counting()
    )
    run = Run(
        (1.0, Raised("KeyError", "'x'", "line 2", ("KeyError", "LookupError")), None),
        ("query",),
        Counts(3, frozenset({(), (2, 3)})),
        {"layer": 2},
    )
    for value in (program, run):
        assert alike(decode(encode(value)), value)
    assert decode(encode(run)).outcomes[1].bases == ("KeyError", "LookupError")


@pytest.mark.parametrize("exercise", all_exercises(), ids=lambda exercise: exercise.name)
def test_the_programs_of_every_exercise_and_their_runs_can_travel(exercise) -> None:
    for case in exercise.cases:
        program = exercise.program(case, seed=5)
        assert alike(decode(encode(program)), program), case.name
        run = run_here(exercise, exercise.reference, decode(encode(program)), Heard(), ours=True)
        assert alike(decode(encode(run)), run), case.name


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, np.array(["a"]), np.array([None]), lambda: 1, b"x"],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_plain_is_refused_by_name(value) -> None:
    with pytest.raises(CodecError, match="cannot be sent"):
        encode([value])


def test_a_value_that_is_too_large_or_too_deep_is_refused() -> None:
    with pytest.raises(CodecError, match="too large"):
        encode(np.zeros(9 * 2**20))
    with pytest.raises(CodecError, match="too large"):
        encode("x" * (MAX_HEADER_BYTES + 1))
    deep: list = []
    for _ in range(DEEP):
        deep = [deep]
    with pytest.raises(CodecError):
        decode(encode(deep))


@FUZZ
@given(st.binary(max_size=300))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        decode(b"\x00\x00\x00\x02[]" + data)


@FUZZ
@given(st.data())
def test_a_message_with_altered_bytes_is_read_or_refused_but_never_crashes(data) -> None:
    message = bytearray(encode({"id": "a", "run": Run((np.arange(3.0), torch.ones(2), "x"), (), None, {"f": 1})}))
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(message)))
    for altered in (bytes(message), bytes(message[:cut])):
        try:
            decode(altered)
        except CodecError:
            continue


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
TAGS = "list tuple dict float complex array scalar tensor dtype opaque raised named generator result step program run"


@FUZZ
@given(st.sampled_from(TAGS.split()), st.lists(json_values, max_size=8))
def test_a_header_of_the_wrong_form_is_refused_or_plain(tag: str, fields: list) -> None:
    try:
        value = decode(_message([tag, *fields]))
    except CodecError:
        return
    assert alike(decode(encode(value)), value)


def _message(header, body: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return LENGTH.pack(len(text)) + text + body


def _npz(*members: bytes, compress: int = zipfile.ZIP_STORED, name: str = "{}.npy") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compress) as archive:
        for index, member in enumerate(members):
            archive.writestr(name.format(index), member)
    return stream.getvalue()


def _npy(array: np.ndarray, **changed) -> bytes:
    stream = io.BytesIO()
    fields = np.lib.format.header_data_from_array_1_0(array) | changed
    np.lib.format.write_array_header_1_0(stream, fields)
    return stream.getvalue() + array.tobytes()


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff\xff\xff\xff",
        LENGTH.pack(5) + b"[]",
        _message(["run"]),
        _message(["tensor", 0, "quint8"]),
        _message(["array", 0]),
        _message([["list"]]),
        _message({"a": 1}),
        LENGTH.pack(3) + b"NaN",
        LENGTH.pack(8) + b"Infinity",
        LENGTH.pack(6000) + b"[" * 6000,
        LENGTH.pack(5000) + b"9" * 5000,
        _message(None, _npz(_npy(np.ones(2)))),
        _message(["array", 0], _npz(_npy(np.ones(2)), name="../{}.npy")),
        _message(["array", 0], _npz(_npy(np.ones(2)), compress=zipfile.ZIP_DEFLATED)),
        _message(["array", 0], _npz(_npy(np.ones(2), shape=(10**12,)))),
        _message(["array", 0], _npz(_npy(np.ones(2), shape=(-2, -1)))),
        _message(["array", 0], _npz(_npy(np.ones(2), descr="|O"))),
        _message(["array", 0], _npz(_npy(np.ones(2), descr=[("a", "<f8")]))),
        _message(["array", 0], _npz(_npy(np.ones(2), descr="<V8"))),
        _message(["list", ["array", 0], ["array", 0]], _npz(_npy(np.ones(2)))),
        _message(["tensor", 0, "float32"], _npz(_npy(np.ones(2)))),
        _message(["scalar", 0], _npz(_npy(np.ones(2)))),
        _message(["dict", ["a", 1], ["a", 2]]),
        _message(["dict", [["list"], 1]]),
        _message(["generator", "os", 1]),
        _message(["named", "f", None, [["w", 3]], None]),
        _message(["named", "f", None, None, 3]),
        _message(["program", [3], False]),
        _message(["run", [], [], None, [["f", "many"]]]),
        pickle.dumps([1, 2]),
    ],
    ids=range(31),
)
def test_a_forged_message_is_refused(message: bytes) -> None:
    with pytest.raises(CodecError):
        decode(message)


def test_a_forged_message_gains_no_program_out_of_a_run() -> None:
    assert isinstance(decode(_message(["program", [], True])), Program)
    with pytest.raises(CodecError):
        decode(_message(["run", [], [], ["program", [], True], []]))
