"""Compare what came with what was expected, and say in one sentence where they part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from autograder.values import Opaque, Raised, describe, shortened

RELATIVE = {"float64": 1e-8, "float32": 2e-4, "float16": 1e-2, "bfloat16": 4e-2, "complex128": 1e-8}
ABSOLUTE_SHARE = 0.1  # of the relative tolerance, times the largest expected entry: for entries near zero
Tolerance = Mapping[str, float] | float | None


def difference(
    expected: Any, actual: Any, what: str, tolerance: Tolerance = None, parts: Sequence[str] = ()
) -> str | None:
    """Give a sentence on the first difference, or None.

    Args:
        expected: The reference's outcome.
        actual: The solution's outcome.
        what: What the outcome is called in the sentence.
        tolerance: Relative tolerance, by dtype or for all, if it is not the default.
        parts: Names for the parts of a tuple.
    """
    if isinstance(actual, Raised):
        return _raised(expected, actual)
    if isinstance(expected, Raised):
        return f"expected {_exception(expected)}, but {what} is {describe(actual)}"
    if actual is None and expected is not None:
        return f"{what} is None: did you forget `return`?"
    if isinstance(expected, Opaque):  # of a belief, never of a reference
        return None if expected == actual else f"expected {describe(expected)}, but {what} is {describe(actual)}"
    if isinstance(actual, Opaque):
        return f"expected {what} to be {describe(expected)}, but it is {describe(actual)}"
    if isinstance(expected, (list, tuple)):
        return _sequence(expected, actual, what, tolerance, parts)
    if isinstance(expected, dict):
        return _dict(expected, actual, what, tolerance)
    if isinstance(expected, (np.ndarray, torch.Tensor)):
        return _array(expected, actual, what, tolerance)
    if isinstance(expected, bool) or expected is None or isinstance(expected, str):
        actual = _unwrapped(actual)
        same = type(expected) is type(actual) and expected == actual
        return None if same else f"expected {what} to be {expected!r}, but it is {_shown(actual)}"
    return _number(expected, actual, what, tolerance)


def same(belief: Any, actual: Any, tolerance: Tolerance = None, asked: Any = None) -> bool:
    """Tell whether a belief's outcome and a solution's agree.

    A library's words tell faults apart, so exceptions agree when type and message do. The words of a refusal are
    everyone's own: where the contract asks for an exception, any two that answer it agree, and a belief that raises
    without a word stands for all words.

    Args:
        belief: The belief's outcome.
        actual: The solution's outcome.
        tolerance: Relative tolerance, by dtype or for all, if it is not the default.
        asked: The reference's outcome.
    """
    if not (isinstance(belief, Raised) and isinstance(actual, Raised)):
        return difference(belief, actual, "it", tolerance) is None
    if isinstance(asked, Raised) and belief.is_a(asked.type_name) and actual.is_a(asked.type_name):
        return True
    return belief.type_name == actual.type_name and belief.message in ("", actual.message)


def _raised(expected: Any, actual: Raised) -> str | None:
    if isinstance(expected, Raised) and actual.is_a(expected.type_name):
        return None
    where = f" (at {actual.line})" if actual.line else ""
    wanted = f"expected {_exception(expected)}, but your code" if isinstance(expected, Raised) else "your code"
    if actual.type_name == "NotImplementedError":
        return "this exercise is not answered yet: replace `raise NotImplementedError()` by your code"
    return f"{wanted} raised {describe(actual)}{where}"


def _exception(expected: Raised) -> str:
    article = "an" if expected.type_name[0] in "AEIOU" else "a"
    return f"{article} {expected.type_name} here"


def _unwrapped(value: Any) -> Any:
    """Give the number in a scalar of NumPy or PyTorch; leave anything else as it is."""
    scalar = isinstance(value, np.generic) or (isinstance(value, (np.ndarray, torch.Tensor)) and value.ndim == 0)
    return value.item() if scalar else value


def _shown(value: Any) -> str:
    return shortened(repr(value)) if isinstance(value, (bool, int, float, str)) else describe(value)


def _sequence(expected: Any, actual: Any, what: str, tolerance: Tolerance, parts: Sequence[str]) -> str | None:
    names = list(parts) if len(parts) == len(expected) else [f"{what}[{i}]" for i in range(len(expected))]
    if not isinstance(actual, (list, tuple)):
        listed = f" ({', '.join(names)})" if parts else ""
        return f"expected {what} to be {describe(expected)}{listed}, but it is {describe(actual)}"
    if len(actual) != len(expected):
        return f"expected {what} to have {len(expected)} entries, but it has {len(actual)}"
    for name, wanted, came in zip(names, expected, actual, strict=True):
        found = difference(wanted, came, name, tolerance)
        if found:
            return found
    return None


def _dict(expected: Mapping[str, Any], actual: Any, what: str, tolerance: Tolerance) -> str | None:
    if not isinstance(actual, dict) or actual.keys() != expected.keys():
        return f"expected {what} to be {describe(expected)}, but it is {describe(actual)}"
    found = (difference(expected[name], actual[name], f"{what}[{name!r}]", tolerance) for name in expected)
    return next((sentence for sentence in found if sentence), None)


def _number(expected: Any, actual: Any, what: str, tolerance: Tolerance) -> str | None:
    actual, wanted = _unwrapped(actual), _unwrapped(expected)
    if type(actual) not in (int, float, complex):
        return f"expected {what} to be a number, but it is {describe(actual)}"
    if type(wanted) is int and type(actual) is float:
        return f"expected {what} to be an int, but it is the float {actual!r}: whole numbers need // or round()"
    relative = _relative("float64", tolerance)
    if wanted == actual or (wanted != wanted and actual != actual):
        return None
    if type(wanted) is not int and _near(wanted, actual, relative):
        return None
    return f"expected {what} to be {wanted!r}, but it is {shortened(repr(actual))}"


def _near(wanted: Any, actual: Any, relative: float) -> bool:
    try:
        return math.isfinite(abs(actual)) and abs(actual - wanted) <= relative * abs(wanted)
    except OverflowError:  # an int beyond every float
        return False


def _array(expected: Any, actual: Any, what: str, tolerance: Tolerance) -> str | None:
    wanted_kind = "a tensor" if isinstance(expected, torch.Tensor) else "a NumPy array"
    if not isinstance(actual, type(expected)):
        wrap = "torch.tensor(…)" if isinstance(expected, torch.Tensor) else "np.array(…)"
        fix = f"; make one with {wrap}" if isinstance(actual, (list, tuple, int, float)) else ""
        return f"expected {what} to be {wanted_kind}, but it is {describe(actual)}{fix}"
    if tuple(actual.shape) != tuple(expected.shape):
        return f"expected {what} to have the shape {tuple(expected.shape)}, but it has {tuple(actual.shape)}"
    wanted_dtype, came_dtype = _dtype(expected), _dtype(actual)
    if _kind(wanted_dtype) != _kind(came_dtype) or (_kind(wanted_dtype) == "float" and wanted_dtype != came_dtype):
        return f"expected {what} to have the dtype {wanted_dtype}, but it has {came_dtype}"
    return _entries(_numpy(expected), _numpy(actual), what, _relative(wanted_dtype, tolerance))


def _entries(expected: np.ndarray, actual: np.ndarray, what: str, relative: float) -> str | None:
    unclean = np.isfinite(expected) & ~np.isfinite(actual)
    if unclean.any():
        index = tuple(int(i) for i in np.argwhere(unclean)[0])
        return (
            f"{_at(what, index)} is {actual[index]}, but it should be {_shown_number(expected[index])}; "
            f"{_count(unclean)} not finite"
        )
    if expected.dtype.kind in "fc":
        finite = np.abs(expected[np.isfinite(expected)])
        floor = relative * ABSOLUTE_SHARE * (float(finite.max()) if finite.size and finite.max() > 0 else 1.0)
        wrong = ~_close(expected, actual, relative, floor)
    else:
        wrong = actual != expected
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{_at(what, index)} is {_shown_number(actual[index])}, but it should be "
        f"{_shown_number(expected[index])}; {_count(wrong)} wrong"
    )


def _close(expected: np.ndarray, actual: np.ndarray, relative: float, floor: float) -> np.ndarray:
    """Compare by operators alone: NumPy's own comparisons can be replaced by the code that is checked."""
    with np.errstate(invalid="ignore", over="ignore"):
        near = abs(actual - expected) <= floor + relative * abs(expected)
    both_nan = (actual != actual) & (expected != expected)
    return (actual == expected) | both_nan | (near & (abs(expected) < math.inf) & (abs(actual) < math.inf))


def _count(wrong: np.ndarray) -> str:
    return f"{int(wrong.sum())} of {wrong.size} numbers {'is' if wrong.sum() == 1 else 'are'}"


def _at(what: str, index: tuple[int, ...]) -> str:
    return f"{what}[{', '.join(map(str, index))}]" if index else what


def _shown_number(value: Any) -> str:
    return f"{value:.5g}" if value.dtype.kind in "fc" else str(value)


def _relative(dtype: str, tolerance: Tolerance) -> float:
    if isinstance(tolerance, (int, float)):
        return float(tolerance)
    return (tolerance or {}).get(dtype, RELATIVE.get(dtype, 0.0))


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")


def _kind(dtype: str) -> str:
    return next((kind for kind in ("bool", "complex", "float") if kind in dtype), "int")


def _numpy(value: Any) -> np.ndarray:
    """Give the entries as a NumPy array; halves widen to float32, which holds them exactly."""
    if isinstance(value, torch.Tensor):
        value = value.float().numpy() if value.dtype in (torch.float16, torch.bfloat16) else value.numpy()
    return value.astype(np.float32) if value.dtype == np.float16 else value
