"""Pieces that inputs, wrong forms and accepted forms of the norms are put together from."""

from __future__ import annotations

import numpy as np

from autograder.draw import Draw
from autograder.program import Program, Run, call

Array = np.ndarray

TINY, HUGE = 1e-4, 1e4  # scales at which eps decides everything, and nothing
LARGE_EPS = 0.5  # beside entries of spread 1
MEAN = 3.0  # plain noise has mean 0, where a mean that was forgotten does not show
DEFAULT_EPS = 1e-5
VISIBLE_SLIP = 1e-3  # coarse on purpose: it only picks the sentence, the values decide


def rows(draw: Draw, *shape: int, scale: float = 1.0) -> Array:
    """Draw tokens whose entries have mean and spread of their own."""
    return draw.normal(*shape, scale=scale, mean=MEAN * scale)


def vector(draw: Draw, width: int) -> Array:
    """Draw a gain or a bias of a trained layer: neither near 1 nor near 0 everywhere."""
    return draw.normal(width, scale=0.7, mean=0.4)


def tokens(draw: Draw, leading: int = 1, scale: float = 1.0) -> Array:
    """Draw tokens of a width of at least 3, with some leading axes of different sizes."""
    return rows(draw, *draw.sizes(leading + 1, low=3), scale=scale)


def with_gain_and_bias(draw: Draw, x: Array, **options: float) -> Program:
    """Call a layer norm on `x`."""
    return call(x, vector(draw, x.shape[-1]), vector(draw, x.shape[-1]), **options)


def with_gain(draw: Draw, x: Array, **options: float) -> Program:
    """Call an RMS norm on `x`."""
    return call(x, vector(draw, x.shape[-1]), **options)


def some_rows_constant(draw: Draw) -> Array:
    """Draw tokens of which the first holds one number only; 3 has a mean without rounding."""
    x = tokens(draw)
    x[0] = MEAN
    return x


def mean_over(x: Array, axis: int | tuple[int, ...] | None) -> Array:
    """Average and keep the axes."""
    return x.mean(axis=axis, keepdims=True)


def normalize(x: Array, axis: int | tuple[int, ...] | None, eps: float) -> Array:
    """Standardize over axes of choice."""
    centered = x - mean_over(x, axis)
    return centered / np.sqrt(mean_over(centered**2, axis) + eps)


def rows_are_standardized(program: Program, found: Run) -> str | None:
    """Undo gain and bias, and look at mean and variance of each token."""
    arguments = program.steps[0]
    x, gain, bias = (np.asarray(array, dtype=float) for array in arguments.args[:3])
    eps = arguments.kwargs.get("eps", DEFAULT_EPS)
    normalized = (np.asarray(found.outcomes[0], dtype=float) - bias) / gain
    if normalized.shape != x.shape or not np.isfinite(normalized).all():
        return None
    wanted = x.var(axis=-1) / (x.var(axis=-1) + eps)
    for what, came, should in (("mean", normalized.mean(-1), 0 * wanted), ("variance", normalized.var(-1), wanted)):
        wrong = ~np.isclose(came, should, atol=VISIBLE_SLIP, rtol=VISIBLE_SLIP)
        if wrong.any():
            token = tuple(int(i) for i in np.argwhere(wrong)[0])
            place = f" {', '.join(map(str, token))}" if token else ""
            return (
                f"with gain and bias undone, token{place} has the {what} {came[token]:.4g} over its features, "
                f"but it should be {should[token]:.4g}"
            )
    return None


def standard_deviation(x: Array, ddof: int = 0) -> Array:
    """Take each token's standard deviation; `ddof=1` is the estimate from a sample."""
    return x.std(axis=-1, ddof=ddof, keepdims=True)
