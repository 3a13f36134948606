"""Scaled dot-product attention: each query averages the values, weighted by how well their keys match.

Queries, keys and values are rows; any axes before the last two are independent problems. Arithmetic runs in
float32 or better and results return to the inputs' precision. Infinities are honest answers here (a hidden
score is -inf), so overflow is not reported as a warning.
"""

import math
from numbers import Integral, Real

import numpy as np
from jaxtyping import Bool, Float
from jaxtyping import Real as RealArray

from course_lib.arguments import as_floating, as_mask, require_broadcastable, require_equal_axis, working

Array = np.ndarray


@np.errstate(over="ignore", invalid="ignore")
def softmax(scores: RealArray[Array, "*batch key"]) -> Float[Array, "*batch key"]:
    """Turn scores into weights that sum to 1 over the last axis.

    weights_j = exp(score_j - max) / Σ_k exp(score_k - max)

    Subtracting the maximum changes nothing in exact arithmetic and keeps every exponential at or below 1.
    A row that holds only -inf has nothing to look at and gives zeros.

    Source: Vaswani et al. 2017, §3.2.1, eq. 1, arXiv 1706.03762. The paper leaves a row with no visible key
    undefined; here its weights are 0.
    """
    (scores,), dtype = working(as_floating("scores", scores, least_axes=1))
    peak = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    exponentials = np.exp(scores - np.where(np.isneginf(peak), 0, peak))
    total = exponentials.sum(axis=-1, keepdims=True)
    return (exponentials / np.where(total == 0, 1, total)).astype(dtype, copy=False)


@np.errstate(over="ignore", invalid="ignore")
def attention_scores(
    query: RealArray[Array, "... query d_k"], key: RealArray[Array, "... key d_k"]
) -> Float[Array, "... query key"]:
    """Score every query against every key: query · key / √d_k.

    A sum of d_k products of independent unit-variance entries has standard deviation √d_k; the division
    brings it back to 1, whatever the width.

    Raises:
        ValueError: `query` and `key` differ in width, or their leading axes do not broadcast.

    Source: Vaswani et al. 2017, §3.2.1, eq. 1 and footnote 4, arXiv 1706.03762.
    """
    query = as_floating("query", query, least_axes=2)
    key = as_floating("key", key, least_axes=2)
    require_equal_axis("key", key, -1, "query", query, -1)
    require_broadcastable(query=query, key=key)
    if query.shape[-1] == 0:
        raise ValueError("`query` and `key` have width 0; a score needs at least one feature.")
    (query, key), dtype = working(query, key)
    scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    return scores.astype(dtype, copy=False)


@np.errstate(over="ignore", invalid="ignore")
def scaled_dot_product_attention(
    query: RealArray[Array, "... query d_k"],
    key: RealArray[Array, "... key d_k"],
    value: RealArray[Array, "... key d_v"],
    mask: Bool[Array, "..."] | None = None,
) -> tuple[Float[Array, "... query d_v"], Float[Array, "... query key"]]:
    """Average the values with weights softmax(query keyᵀ / √d_k); return the output and the weights.

    Where `mask` is True a key is hidden from a query; it broadcasts against `(..., query, key)`.

    Raises:
        TypeError: `mask` is not boolean.
        ValueError: widths, numbers of keys, leading axes or the mask do not fit.

    Source: Vaswani et al. 2017, §3.2.1, eq. 1, and §3.2.3 for the mask, arXiv 1706.03762. The paper does not
    say what a query sees when everything is hidden; here its weights and output are 0.
    """
    query, key, value, dtype = _prepare(query, key, value)
    scores = attention_scores(query, key)
    if mask is not None:
        scores = np.where(as_mask(mask, scores.shape), -np.inf, scores)
    weights = softmax(scores)
    return _mean_of_values(weights, value, dtype)


@np.errstate(over="ignore", invalid="ignore")
def self_attention(
    x: RealArray[Array, "... sequence d_model"],
    w_q: RealArray[Array, "d_model d_k"],
    w_k: RealArray[Array, "d_model d_k"],
    w_v: RealArray[Array, "d_model d_v"],
) -> tuple[Float[Array, "... sequence d_v"], Float[Array, "... sequence sequence"]]:
    """Let every token of `x` attend to all tokens: queries x w_q, keys x w_k, values x w_v.

    Raises:
        ValueError: a matrix does not take `x`'s width, or `w_q` and `w_k` differ in output width.

    Source: Vaswani et al. 2017, §3.2.2 with one head and no output projection, arXiv 1706.03762.
    """
    x = as_floating("x", x, least_axes=2)
    matrices = {
        name: as_floating(name, matrix, least_axes=2) for name, matrix in (("w_q", w_q), ("w_k", w_k), ("w_v", w_v))
    }
    for name, matrix in matrices.items():
        require_equal_axis(name, matrix, -2, "x", x, -1)
    require_equal_axis("w_k", matrices["w_k"], -1, "w_q", matrices["w_q"], -1)
    (x, w_q, w_k, w_v), dtype = working(x, *matrices.values())
    output, weights = scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)
    return output.astype(dtype, copy=False), weights.astype(dtype, copy=False)


def softmax_jacobian(weights: RealArray[Array, "*batch key"]) -> Float[Array, "*batch key key"]:
    """Differentiate softmax at a row of weights: ∂weights_i / ∂scores_j = weights_i (δ_ij - weights_j).

    Where one weight is near 1 and the others near 0, every entry is near 0: a saturated row stops the
    gradient.

    Source: the quotient rule on eq. 1 of Vaswani et al. 2017; §3.2.1 argues from it for the factor 1/√d_k.
    """
    weights = as_floating("weights", weights, least_axes=1)
    identity = np.eye(weights.shape[-1], dtype=weights.dtype)
    return weights[..., :, None] * (identity - weights[..., None, :])


def expected_score_std(d_k: int, scaled: bool) -> float:
    """Predict the standard deviation of a score for independent entries with mean 0 and variance 1.

    A raw score is a sum of d_k independent products of variance 1: √d_k. Divided by √d_k it is 1.

    Raises:
        TypeError: `d_k` is not a whole number.
        ValueError: `d_k` is below 1.

    Source: Vaswani et al. 2017, §3.2.1, footnote 4, arXiv 1706.03762.
    """
    if not isinstance(d_k, Integral) or isinstance(d_k, bool):
        raise TypeError(f"`d_k` must be a whole number, got {d_k!r}.")
    if d_k < 1:
        raise ValueError(f"`d_k` must be at least 1, got {d_k}.")
    return 1.0 if scaled else math.sqrt(d_k)


@np.errstate(over="ignore", invalid="ignore")
def attention_with_temperature(
    query: RealArray[Array, "... query d_k"],
    key: RealArray[Array, "... key d_k"],
    value: RealArray[Array, "... key d_v"],
    temperature: float,
) -> tuple[Float[Array, "... query d_v"], Float[Array, "... query key"]]:
    """Attend with softmax(query keyᵀ / (√d_k · temperature)): low is sharp, high is even, 1 is the usual.

    The row's maximum is subtracted before the division, so a temperature near 0 gives the best key, not NaN.

    Raises:
        TypeError: `temperature` is not a number.
        ValueError: `temperature` is not above 0.

    Source: Hinton et al. 2015, §2, eq. 1, arXiv 1503.02531. The paper divides class logits; here the scores.
    """
    if not isinstance(temperature, Real) or isinstance(temperature, bool):
        raise TypeError(f"`temperature` must be a number, got {type(temperature).__name__}.")
    if not temperature > 0:
        raise ValueError(f"`temperature` must be above 0, got {temperature}.")
    query, key, value, dtype = _prepare(query, key, value)
    scores = attention_scores(query, key).astype(np.float64)
    shifted = scores - scores.max(axis=-1, keepdims=True, initial=-np.inf)
    return _mean_of_values(softmax(shifted / float(temperature)), value, dtype)


@np.errstate(over="ignore", invalid="ignore")
def attention_backward(
    query: RealArray[Array, "... query d_k"],
    key: RealArray[Array, "... key d_k"],
    value: RealArray[Array, "... key d_v"],
    grad_output: RealArray[Array, "... query d_v"],
) -> tuple[Float[Array, "... query d_k"], Float[Array, "... key d_k"], Float[Array, "... key d_v"]]:
    """Carry the gradient of a loss from attention's output back to query, key and value.

    grad_value   = weightsᵀ grad_output
    grad_weights = grad_output valueᵀ
    grad_scores  = weights · (grad_weights - Σ_k weights_k grad_weights_k), softmax's Jacobian on each row
    grad_query   = grad_scores key / √d_k,  grad_key = grad_scoresᵀ query / √d_k

    Raises:
        ValueError: `grad_output` does not have the output's shape, or the other shapes do not fit.

    Source: the chain rule on eq. 1 of Vaswani et al. 2017; the same four lines are in Dao et al. 2022,
    appendix B.2, arXiv 2205.14135.
    """
    query, key, value, dtype = _prepare(query, key, value)
    grad_output = as_floating("grad_output", grad_output, least_axes=2)
    output, weights = scaled_dot_product_attention(query, key, value)
    if grad_output.shape != output.shape:
        raise ValueError(f"`grad_output` has shape {grad_output.shape}; attention's output has {output.shape}.")
    dtype = np.result_type(dtype, grad_output)
    grad_output = grad_output.astype(np.result_type(output, grad_output), copy=False)
    scale = 1 / math.sqrt(query.shape[-1])
    grad_weights = grad_output @ np.swapaxes(value, -1, -2)
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(axis=-1, keepdims=True))
    gradients = (
        (grad_scores @ key * scale, query),
        (np.swapaxes(grad_scores, -1, -2) @ query * scale, key),
        (np.swapaxes(weights, -1, -2) @ grad_output, value),
    )
    grad_query, grad_key, grad_value = (
        _sum_to(gradient, array.shape).astype(dtype, copy=False) for gradient, array in gradients
    )
    return grad_query, grad_key, grad_value


def _prepare(query: object, key: object, value: object) -> tuple[Array, Array, Array, np.dtype]:
    """Check that the three fit together and raise them to working precision; also return the final dtype."""
    arrays = {
        name: as_floating(name, array, least_axes=2)
        for name, array in (("query", query), ("key", key), ("value", value))
    }
    require_equal_axis("key", arrays["key"], -1, "query", arrays["query"], -1)
    require_equal_axis("value", arrays["value"], -2, "key", arrays["key"], -2)
    require_broadcastable(**arrays)
    (query, key, value), dtype = working(*arrays.values())
    return query, key, value, np.dtype(dtype)


def _mean_of_values(weights: Array, value: Array, dtype: np.dtype) -> tuple[Array, Array]:
    return (weights @ value).astype(dtype, copy=False), weights.astype(dtype, copy=False)


def _sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Undo a broadcast: an array that was used several times gets the sum of its gradients."""
    extra = gradient.ndim - len(shape)
    gradient = gradient.sum(axis=tuple(range(extra)))
    repeated = tuple(axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1)
    return gradient.sum(axis=repeated, keepdims=True)
