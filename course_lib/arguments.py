"""Turn a learner's arrays into floats that a formula can use, or say in one sentence what is wrong."""

import numpy as np
from numpy.typing import DTypeLike


def as_floating(name: str, array: object, least_axes: int) -> np.ndarray:
    """Return `array` as a floating array: integers become float64, floats keep their precision.

    Raises:
        TypeError: the values are not real numbers.
        ValueError: there are fewer than `least_axes` axes, or the rows of a list are ragged.
    """
    try:
        result = np.asarray(array)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f"`{name}` cannot be read as an array: {error}") from None
    if result.dtype.kind in "iu":
        result = result.astype(np.float64)
    if result.dtype.kind != "f":
        raise TypeError(f"`{name}` must hold real numbers, got {_kind_of(array, result)}.")
    if result.ndim < least_axes:
        plural = "axis" if least_axes == 1 else "axes"
        raise ValueError(f"`{name}` needs at least {least_axes} {plural}, got shape {result.shape}.")
    return result


def working(*arrays: np.ndarray) -> tuple[list[np.ndarray], DTypeLike]:
    """Raise arrays to at least float32 for the arithmetic; the second result is the dtype to return to.

    Half precision overflows at 65504, which an intermediate sum of products reaches easily although the
    final result is small.
    """
    dtype = np.result_type(*arrays)
    precise = np.promote_types(dtype, np.float32)
    return [array.astype(precise, copy=False) for array in arrays], dtype


def require_equal_axis(
    first: str,
    first_array: np.ndarray,
    first_axis: int,
    second: str,
    second_array: np.ndarray,
    second_axis: int,
) -> None:
    """Raise a `ValueError` that names both arguments when two axes that must be equal in length are not."""
    expected, got = second_array.shape[second_axis], first_array.shape[first_axis]
    if expected != got:
        raise ValueError(
            f"`{first}` has {got} along axis {first_axis} and `{second}` has {expected} along axis "
            f"{second_axis}; they must be equal (shapes {first_array.shape} and {second_array.shape})."
        )


def require_broadcastable(**arrays: np.ndarray) -> None:
    """Raise a `ValueError` when the axes before the last two of these arrays do not broadcast together."""
    try:
        np.broadcast_shapes(*(array.shape[:-2] for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"`{name}` {array.shape}" for name, array in arrays.items())
        raise ValueError(f"The leading axes (all but the last two) do not fit together: {shapes}.") from None


def as_mask(mask: object, shape: tuple[int, ...]) -> np.ndarray:
    """Return a boolean mask that broadcasts against scores of `shape`, `(..., query, key)`; True hides.

    Raises:
        TypeError: the mask is not boolean. A float or integer mask is ambiguous: in some libraries 1 hides,
            in others 1 shows, and an additive mask holds 0 and -inf.
        ValueError: the mask does not broadcast, or would add queries or keys.
    """
    result = np.asarray(mask)
    if result.dtype != np.bool_:
        raise TypeError(
            f"`mask` must be boolean (True hides), got {_kind_of(mask, result)}; compare first, as in `mask == 1`."
        )
    try:
        fits = np.broadcast_shapes(result.shape, shape)[-2:] == shape[-2:]
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"`mask` has shape {result.shape}, which does not broadcast against the scores' "
            f"(..., query, key) shape {shape}."
        )
    return result


def _kind_of(original: object, array: np.ndarray) -> str:
    return "None" if original is None else f"dtype {array.dtype}"
