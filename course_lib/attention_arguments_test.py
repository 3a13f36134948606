"""A bad argument of an attention function is named, in a sentence of its own."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import math

import jaxtyping
import numpy as np
import pytest

from course_lib.attention import (
    attention_backward,
    attention_scores,
    attention_with_temperature,
    expected_score_std,
    scaled_dot_product_attention,
    self_attention,
    softmax,
)


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


SQUARE, WIDE = np.ones((3, 4)), np.ones((3, 5))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: softmax(np.array(1.0)), ValueError, "`scores` needs at least 1 axis"),
        (lambda: softmax(np.array(["a"])), TypeError, "`scores` must hold real numbers"),
        (lambda: softmax(None), TypeError, "`scores` must hold real numbers, got None"),
        (lambda: softmax([[1.0], [1.0, 2.0]]), ValueError, "`scores` cannot be read as an array"),
        (lambda: attention_scores(SQUARE, WIDE), ValueError, "`key` has 5 along axis -1 and `query` has 4"),
        (lambda: attention_scores(np.ones((2, 3, 4)), np.ones((3, 3, 4))), ValueError, "leading axes"),
        (lambda: attention_scores(np.ones((3, 0)), np.ones((3, 0))), ValueError, "width 0"),
        (lambda: attention_scores(np.ones(4), SQUARE), ValueError, "`query` needs at least 2 axes"),
        (
            lambda: scaled_dot_product_attention(SQUARE, SQUARE, np.ones((2, 4))),
            ValueError,
            "`value` has 2 along axis -2 and `key` has 3",
        ),
        (
            lambda: scaled_dot_product_attention(SQUARE, SQUARE, SQUARE, np.zeros((3, 3))),
            TypeError,
            "`mask` must be boolean",
        ),
        (
            lambda: scaled_dot_product_attention(SQUARE, SQUARE, SQUARE, np.zeros((3, 3), dtype=int)),
            TypeError,
            "`mask` must be boolean",
        ),
        (
            lambda: scaled_dot_product_attention(SQUARE, SQUARE, SQUARE, np.zeros((2, 3), dtype=bool)),
            ValueError,
            "`mask` has shape",
        ),
        (
            lambda: scaled_dot_product_attention(SQUARE[:1], SQUARE, SQUARE, np.zeros((3, 3), dtype=bool)),
            ValueError,
            "`mask` has shape",
        ),
        (lambda: self_attention(SQUARE, WIDE.T, SQUARE, SQUARE), ValueError, "`w_q` has 5 along axis -2"),
        (
            lambda: self_attention(SQUARE, np.ones((4, 2)), np.ones((4, 3)), np.ones((4, 2))),
            ValueError,
            "`w_k` has 3 along axis -1 and `w_q` has 2",
        ),
        (lambda: expected_score_std(0, True), ValueError, "`d_k` must be at least 1"),
        (lambda: expected_score_std(2.0, True), TypeError, "`d_k` must be a whole number"),
        (lambda: attention_with_temperature(SQUARE, SQUARE, SQUARE, 0), ValueError, "`temperature` must be"),
        (lambda: attention_with_temperature(SQUARE, SQUARE, SQUARE, -1.0), ValueError, "`temperature` must"),
        (
            lambda: attention_with_temperature(SQUARE, SQUARE, SQUARE, math.nan),
            ValueError,
            "`temperature` must",
        ),
        (lambda: attention_with_temperature(SQUARE, SQUARE, SQUARE, "1"), TypeError, "`temperature` must"),
        (lambda: attention_backward(SQUARE, SQUARE, SQUARE, WIDE), ValueError, "`grad_output` has shape"),
    ],
)
@pytest.mark.usefixtures("unchecked_annotations")
def test_a_bad_argument_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
