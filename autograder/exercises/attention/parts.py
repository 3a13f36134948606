"""Pieces that wrong and accepted forms of attention are put together from."""

import math

import numpy as np

from course_lib.attention import softmax

Array = np.ndarray


def dot_products(query: Array, key: Array) -> Array:
    """Multiply every query with every key."""
    return query @ np.swapaxes(key, -1, -2)


def scaled_scores(query: Array, key: Array) -> Array:
    """Divide the dot products by √d_k; a Python float leaves float32 as it is."""
    return dot_products(query, key) / math.sqrt(query.shape[-1])


def hide(scores: Array, mask: Array | None) -> Array:
    """Give hidden keys the score -inf."""
    return scores if mask is None else np.where(mask, -np.inf, scores)


def attend(scores: Array, value: Array) -> tuple[Array, Array]:
    """Turn scores into weights, and weights into the output."""
    weights = softmax(scores)
    return weights @ value, weights


def softmax_over(axis: int, scores: Array) -> Array:
    """Take the softmax over an axis of choice."""
    return np.moveaxis(softmax(np.moveaxis(scores, axis, -1)), -1, axis)
