"""Right layer norms of other forms; the bug hunt accepts them too."""

import math

import numpy as np

from autograder.exercises.norms_and_residuals.parts import DEFAULT_EPS

Array = np.ndarray


def with_mean_and_var(x: Array, gain: Array, bias: Array, eps: float = DEFAULT_EPS) -> Array:
    """Use NumPy's mean and var, as most do."""
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + eps) + bias


def by_a_reciprocal_root(x: Array, gain: Array, bias: Array, eps: float = DEFAULT_EPS) -> Array:
    """Multiply by (variance + eps) to the power -1/2."""
    centered = x - np.mean(x, -1)[..., None]
    return centered * (np.var(x, -1)[..., None] + eps) ** -0.5 * gain + bias


def standard_deviation_squared(x: Array, gain: Array, bias: Array, eps: float = DEFAULT_EPS) -> Array:
    """Square NumPy's standard deviation, which divides by n."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.std(-1, keepdims=True) ** 2 + eps) * gain + bias


def scale_and_offset_folded(x: Array, gain: Array, bias: Array, eps: float = DEFAULT_EPS) -> Array:
    """Fold gain and root into one scale, mean and bias into one offset."""
    scale = gain / np.sqrt(x.var(-1, keepdims=True) + eps)
    return scale * (x - x.mean(-1, keepdims=True)) + bias


def one_token_at_a_time(x: Array, gain: Array, bias: Array, eps: float = DEFAULT_EPS) -> Array:
    """Loop over tokens and compute each by hand."""
    result = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        row = x[place].astype(np.float64)
        mean = sum(row) / len(row)
        variance = sum((row - mean) ** 2) / len(row)
        result[place] = gain * (row - mean) / math.sqrt(variance + eps) + bias
    return result


def by_einsum(x: Array, gain: Array, bias: Array, eps: float = DEFAULT_EPS) -> Array:
    """Take the mean of the squares as an einsum, in float32 or better."""
    precise = x.astype(np.promote_types(x.dtype, np.float32))
    centered = precise - precise.mean(axis=-1, keepdims=True)
    variance = np.einsum("...d,...d->...", centered, centered) / x.shape[-1]
    return (centered / np.sqrt(variance + eps)[..., None] * gain + bias).astype(x.dtype)


def through_float64(x: Array, gain: Array, bias: Array, eps: float = DEFAULT_EPS) -> Array:
    """Compute in float64 and return to the dtype of the input."""
    wide = x.astype(np.float64)
    centered = wide - wide.mean(-1, keepdims=True)
    return (gain * centered / np.sqrt((centered * centered).mean(-1, keepdims=True) + eps) + bias).astype(x.dtype)


def mean_square_minus_squared_mean(x: Array, gain: Array, bias: Array, eps: float = DEFAULT_EPS) -> Array:
    """Take the variance as the mean of the squares minus the square of the mean, in float64."""
    wide = x.astype(np.float64)
    mean = wide.mean(-1, keepdims=True)
    variance = np.maximum((wide**2).mean(-1, keepdims=True) - mean**2, 0)
    return (gain * (wide - mean) / np.sqrt(variance + eps) + bias).astype(x.dtype)


ACCEPTED_FORMS = [
    with_mean_and_var,
    by_a_reciprocal_root,
    standard_deviation_squared,
    scale_and_offset_folded,
    one_token_at_a_time,
    by_einsum,
    through_float64,
    mean_square_minus_squared_mean,
]
