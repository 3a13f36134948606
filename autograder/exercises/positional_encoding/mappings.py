"""The functions whose equivariance is asked for; the same on both sides of a check."""

from __future__ import annotations

import numpy as np

from course_lib.attention import scaled_dot_product_attention
from course_lib.positions import sinusoidal_encoding

Array = np.ndarray
FAINT = 0.001  # of a feature's spread: what the contract still calls a difference, and far above rounding


def attention_alone(x: Array) -> Array:
    """Let every token attend to all."""
    return scaled_dot_product_attention(x, x, x)[0]


def attention_with_positions(x: Array) -> Array:
    """Add waves first, of an even width."""
    waves = sinusoidal_encoding(len(x), x.shape[-1] + x.shape[-1] % 2)
    return attention_alone(x + waves[:, : x.shape[-1]])


def causal_attention(x: Array) -> Array:
    """Let every token attend to itself and to what came before."""
    future = np.triu(np.ones((len(x), len(x)), dtype=bool), k=1)
    return scaled_dot_product_attention(x, x, x, future)[0]


def each_token_alone(x: Array) -> Array:
    """Treat every token by itself."""
    return np.tanh(x)


def mean_for_everyone(x: Array) -> Array:
    """Give every token the mean of all."""
    return np.repeat(x.mean(axis=0, keepdims=True), len(x), axis=0)


def sorted_columns(x: Array) -> Array:
    """Sort each feature: whoever comes in, the smallest comes out first."""
    return np.sort(x, axis=0)


def reversed_order(x: Array) -> Array:
    """Turn the text around."""
    return x[::-1].copy()


def faint_positions(x: Array) -> Array:
    """Add little, but more at later places."""
    return x + FAINT * np.arange(len(x))[:, None]


def features_rolled_by_place(x: Array) -> Array:
    """Move the features of each token along by its place; every token keeps its sum and its length."""
    return np.stack([np.roll(token, place) for place, token in enumerate(x)])


NAMED = {
    function.__name__: function
    for function in (
        attention_alone,
        attention_with_positions,
        causal_attention,
        each_token_alone,
        mean_for_everyone,
        sorted_columns,
        reversed_order,
        faint_positions,
        features_rolled_by_place,
    )
}
