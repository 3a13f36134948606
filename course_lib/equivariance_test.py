"""The shuffle test against functions whose answer is known, and against wrong ones that look alike."""

import jaxtyping
import numpy as np
import pytest

from course_lib.attention import scaled_dot_product_attention
from course_lib.equivariance import is_permutation_equivariant
from course_lib.positions import sinusoidal_encoding

X = np.random.default_rng(0).normal(size=(6, 4))
THREE_CYCLE = np.array([2, 0, 1, 3, 5, 4])  # not its own inverse
FUTURE = np.triu(np.ones((6, 6), dtype=bool), k=1)


def attend(x, mask=None):
    return scaled_dot_product_attention(x, x, x, mask)[0]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (attend, True),
        (np.tanh, True),
        (lambda x: np.broadcast_to(x.mean(axis=0), x.shape), True),
        (lambda x: attend(x + sinusoidal_encoding(6, 4)), False),
        (lambda x: attend(x, FUTURE), False),
        (lambda x: x[::-1], False),
        (lambda x: np.sort(x, axis=0), False),
        (lambda x: x.mean(axis=0), False),
        (lambda x: x + 1e-3 * np.arange(6)[:, None], False),
        (lambda x: x + 1e-12 * np.arange(6)[:, None], True),
    ],
    ids=["attention", "per token", "mean", "positions", "causal", "reversed", "sorted", "pooled", "faint", "rounding"],
)
def test_functions_are_told_apart_by_what_a_shuffle_does_to_them(function, expected):
    assert is_permutation_equivariant(function, X, THREE_CYCLE) is expected


def test_small_outputs_are_compared_by_their_own_scale():
    assert not is_permutation_equivariant(lambda x: 1e-12 * x * np.arange(6)[:, None], X, THREE_CYCLE)


def test_reversing_is_equivariant_to_the_reversed_order():
    assert is_permutation_equivariant(lambda x: x[::-1], X, np.arange(6)[::-1])


def test_outputs_that_hold_nan_do_not_pass():
    assert not is_permutation_equivariant(lambda x: np.full_like(x, np.nan), X, THREE_CYCLE)


@pytest.mark.parametrize("permutation", [[0, 1, 2, 3, 4, 4], [0, 1, 2], [1, 2, 3, 4, 5, 6]])
def test_what_is_no_permutation_is_refused(permutation, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match="each of the places 0 to 5 once"):
        is_permutation_equivariant(attend, X, np.array(permutation))
