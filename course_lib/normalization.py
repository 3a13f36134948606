"""Normalization: subtract a mean, divide by a spread; over which axes the two are taken gives the method its name.

Arithmetic runs in float32 or better and results return to the inputs' precision, for the square of 300 is already
beyond float16.
"""

import math

import numpy as np
from jaxtyping import Float
from jaxtyping import Real as RealArray

from course_lib.arguments import as_floating, working

Array = np.ndarray
DEFAULT_EPS = 1e-5  # of the framework's layer norm, and of document B
AXES = {"batch": (0, 1), "layer": (2,), "instance": (1,)}  # of a (batch, sequence, feature) array


def normalization_axes(kind: str) -> tuple[int, ...]:
    """Give the axes of a (batch, sequence, feature) array over which a method takes mean and variance.

    Batch norm keeps one pair per feature, layer norm one per token, instance norm one per example and feature.

    Raises:
        ValueError: `kind` is not "batch", "layer" or "instance".

    Source: Ioffe and Szegedy 2015, alg. 1 and §3.2, arXiv 1502.03167; Ba et al. 2016, eq. 3, arXiv 1607.06450;
    Ulyanov et al. 2016, §2, arXiv 1607.08022. Places of an image are positions of a sequence here.
    """
    if not isinstance(kind, str) or kind not in AXES:
        raise ValueError(f"`kind` must be one of {', '.join(map(repr, AXES))}, got {kind!r}.")
    return AXES[kind]


def standardize(x: RealArray[Array, "..."], axes: tuple[int, ...], eps: float = DEFAULT_EPS) -> Float[Array, "..."]:
    """Bring every group of numbers along `axes` to mean 0 and variance 1: (x - mean) / √(variance + eps).

    Raises:
        ValueError: an axis is not there, or `eps` is negative or not finite.

    Source: Ioffe and Szegedy 2015, alg. 1, arXiv 1502.03167, which takes the axes of batch norm.
    """
    (x,), dtype = working(as_floating("x", x, least_axes=1))
    _require_eps(eps)
    for axis in axes:
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"`axes` names axis {axis}; `x` has shape {x.shape}.")
    centered = x - x.mean(axis=axes, keepdims=True)
    variance = np.square(centered).mean(axis=axes, keepdims=True)
    return (centered / np.sqrt(variance + eps)).astype(dtype, copy=False)


def layer_norm(
    x: RealArray[Array, "*batch feature"],
    gain: RealArray[Array, " feature"],
    bias: RealArray[Array, " feature"],
    eps: float = DEFAULT_EPS,
) -> Float[Array, "*batch feature"]:
    """Standardize each token over its features, then scale and shift each feature.

    gain · (x - mean) / √(variance + eps) + bias, with the biased variance: the mean of the squared distances.

    Raises:
        ValueError: `gain` or `bias` does not have one number per feature, or `eps` is negative.

    Source: Ba et al. 2016, eq. 3 and 4, arXiv 1607.06450. The paper has no eps; here, as in the framework, it stands
    inside the root.
    """
    x, gain, bias, dtype = _with_features("x", x, gain=gain, bias=bias)
    _require_eps(eps)
    return (gain * standardize(x, (-1,), eps) + bias).astype(dtype, copy=False)


def rms_norm(
    x: RealArray[Array, "*batch feature"], gain: RealArray[Array, " feature"], eps: float = DEFAULT_EPS
) -> Float[Array, "*batch feature"]:
    """Divide each token by the root of the mean of its squares: gain · x / √(mean(x²) + eps). No mean is removed.

    Raises:
        ValueError: `gain` does not have one number per feature, or `eps` is negative.

    Source: Zhang and Sennrich 2019, eq. 4, arXiv 1910.07467. The paper has no eps; here it stands inside the root.
    """
    x, gain, dtype = _with_features("x", x, gain=gain)
    _require_eps(eps)
    return (gain * x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + eps)).astype(dtype, copy=False)


def layer_norm_backward(
    x: RealArray[Array, "*batch feature"],
    gain: RealArray[Array, " feature"],
    grad_output: RealArray[Array, "*batch feature"],
    eps: float = DEFAULT_EPS,
) -> tuple[Float[Array, "*batch feature"], Float[Array, " feature"], Float[Array, " feature"]]:
    """Carry the gradient of a loss from layer norm's output back to x, gain and bias.

    With x̂ = (x - mean) / root, root = √(variance + eps) and g = gain · grad_output, per token:

    grad_x    = (g - mean(g) - x̂ · mean(g · x̂)) / root
    grad_gain = Σ grad_output · x̂ and grad_bias = Σ grad_output, over all tokens

    The two means take out what cannot change the output: moving all features together, and stretching them.

    Raises:
        ValueError: `grad_output` does not have the shape of `x`, or `gain` not one number per feature.

    Source: the chain rule on eq. 3 and 4 of Ba et al. 2016, arXiv 1607.06450.
    """
    grad_output = as_floating("grad_output", grad_output, least_axes=1)
    x, gain, dtype = _with_features("x", x, gain=gain)
    _require_eps(eps)
    if grad_output.shape != x.shape:
        raise ValueError(f"`grad_output` has shape {grad_output.shape}; layer norm's output has {x.shape}.")
    dtype = np.result_type(dtype, grad_output)
    grad_output = grad_output.astype(np.result_type(x, grad_output), copy=False)
    centered = x - x.mean(axis=-1, keepdims=True)
    root = np.sqrt(np.square(centered).mean(axis=-1, keepdims=True) + eps)
    normalized = centered / root
    g = gain * grad_output
    along = (g * normalized).mean(axis=-1, keepdims=True)
    grad_x = (g - g.mean(axis=-1, keepdims=True) - normalized * along) / root
    tokens = tuple(range(x.ndim - 1))
    gradients = grad_x, (grad_output * normalized).sum(axis=tokens), grad_output.sum(axis=tokens)
    grad_x, grad_gain, grad_bias = (gradient.astype(dtype, copy=False) for gradient in gradients)
    return grad_x, grad_gain, grad_bias


def _with_features(name: str, x: object, **vectors: object) -> tuple:
    """Check that each vector has one number per feature of `x`; raise all to working precision, dtype last."""
    array = as_floating(name, x, least_axes=1)
    arrays = {label: as_floating(label, vector, least_axes=1) for label, vector in vectors.items()}
    for label, vector in arrays.items():
        if vector.shape != array.shape[-1:]:
            raise ValueError(
                f"`{label}` has shape {vector.shape}; it needs one number for each of the {array.shape[-1]} features "
                f"of `{name}`, shape {array.shape[-1:]}."
            )
    raised, dtype = working(array, *arrays.values())
    return *raised, np.dtype(dtype)


def _require_eps(eps: float) -> None:
    if not (math.isfinite(eps) and eps >= 0):
        raise ValueError(f"`eps` must be a finite number that is not negative, got {eps}.")
