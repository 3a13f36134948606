"""Check `repaired_attention`: a bug hunt. The function runs on one sequence and has three faults."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises import library_calls
from autograder.exercises.attention import CHAPTER
from autograder.exercises.attention.parts import dot_products, scaled_scores
from autograder.exercises.attention.properties import dtype_kept, weights_of_a_pair
from autograder.exercises.attention.whole_attention import (
    ACCEPTED_FORMS,
    HIDDEN_CASES,
    inputs,
    masked,
    one_query_sees_nothing,
)
from autograder.program import Program, call
from course_lib import attention
from course_lib.attention import softmax

Array = np.ndarray


def four_short_tokens(draw: Draw) -> Program:
    """Draw data of the shape that a first try has: one sequence, which hides two of the faults."""
    query, key, value = draw.normal(4, 2), draw.normal(4, 2), draw.normal(4, 2)
    return call(query, key, value, draw.mask(4, 4))


def cube(draw: Draw) -> Program:
    """Draw a batch in which all sizes are equal: the faults do not raise there, they only give wrong numbers."""
    return call(draw.normal(4, 4, 4), draw.normal(4, 4, 4), draw.normal(4, 4, 4))


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=attention.scaled_dot_product_attention,
    name="repaired_attention",
    returns=("output", "weights"),
    properties=[dtype_kept, weights_of_a_pair],
    forbids=library_calls.ATTENTION,
    forbids_because="this exercise asks you to repair the function, not to replace it",
    cases=[
        Case("4 tokens of width 2", four_short_tokens),
        Case("4 sequences of 4 tokens of width 4", cube),
        Case("one query sees nothing", one_query_sees_nothing),
        Case("all sizes differ", lambda draw: call(*inputs(draw)), hidden=True),
        Case("some keys hidden", masked, hidden=True),
        *HIDDEN_CASES,
        Case("another query sees nothing", one_query_sees_nothing, hidden=True),
    ],
)


def _masked(scores: Array, mask: Array | None) -> Array:
    return scores if mask is None else np.where(mask, -np.inf, scores)


def _turned_scores(query: Array, key: Array) -> Array:
    return query @ key.T / math.sqrt(query.shape[-1])


def _shares(scores: Array, peak_axis: int, sum_axis: int) -> Array:
    """Take a softmax that gives NaN where all is hidden."""
    exponentials = np.exp(scores - scores.max(axis=peak_axis, keepdims=True))
    return exponentials / exponentials.sum(axis=sum_axis, keepdims=True)


def _zero_where_hidden(weights: Array) -> Array:
    return np.where(np.isnan(weights), 0, weights)


@exercise.misconception("""
    This is the function as you found it: none of the three faults is mended yet. It is right for one sequence whose
    queries all see something, so try what it was not tried on: a batch, and a query that sees nothing.
""")
def starter_unchanged(query, key, value, mask=None):
    d_k = query.shape[-1]
    scores = query @ key.T / math.sqrt(d_k)
    if mask is not None:
        scores = np.where(mask, -np.inf, scores)
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=1, keepdims=True)
    return weights @ value, weights


@exercise.misconception("""
    One fault is left: a batch of equal sizes gives wrong numbers without an error. Print the shape that `.T` makes of
    a (2, 3, 5, 4) array. Which two axes should change places?
""")
def transpose_left(query, key, value, mask=None):
    weights = softmax(_masked(_turned_scores(query, key), mask))
    return weights @ value, weights


@exercise.misconception("""
    One fault is left: with a batch, the sums over the keys are not 1. Axis 1 holds the keys of one sequence; what does
    it hold in a batch?
""")
def axis_left(query, key, value, mask=None):
    weights = _zero_where_hidden(_shares(_masked(scaled_scores(query, key), mask), 1, 1))
    return weights @ value, weights


@exercise.misconception("""
    One fault is left: a query that sees nothing becomes NaN. Its row is -inf everywhere, and -inf minus -inf has no
    value. In this course such a row has weights 0.
""")
def hidden_row_left(query, key, value, mask=None):
    weights = _shares(_masked(scaled_scores(query, key), mask), -1, -1)
    return weights @ value, weights


@exercise.misconception("""
    A query that sees nothing is mended; two faults are left, and both show only in a batch. Follow one (4, 4, 4) batch
    line by line, and compare each line with the same computation on its first sequence alone.
""")
def transpose_and_axis_left(query, key, value, mask=None):
    weights = _zero_where_hidden(_shares(_masked(_turned_scores(query, key), mask), 1, 1))
    return weights @ value, weights


@exercise.misconception("""
    The softmax is on the right axis now; two faults are left. One is in the scores of a batch: look at what `.T` does
    to three axes. The other is a query that sees nothing.
""")
def transpose_and_hidden_row_left(query, key, value, mask=None):
    weights = _shares(_masked(_turned_scores(query, key), mask), -1, -1)
    return weights @ value, weights


@exercise.misconception("""
    The scores of a batch are right now; two faults are left, both in the softmax. Over which axis does it run in a
    batch, and what does it do with a query that sees nothing?
""")
def axis_and_hidden_row_left(query, key, value, mask=None):
    weights = _shares(_masked(scaled_scores(query, key), mask), 1, 1)
    return weights @ value, weights


@exercise.misconception("""
    You mended the axis of the maximum, but not that of the sum: the two belong to the same row.
""")
def axis_of_the_sum_left(query, key, value, mask=None):
    weights = _zero_where_hidden(_shares(_masked(scaled_scores(query, key), mask), -1, 1))
    return weights @ value, weights


@exercise.misconception("""
    You mended the axis of the sum, but not that of the maximum: what is subtracted must be the same for a whole row,
    or it changes the weights.
""")
def axis_of_the_maximum_left(query, key, value, mask=None):
    weights = _zero_where_hidden(_shares(_masked(scaled_scores(query, key), mask), 1, -1))
    return weights @ value, weights


@exercise.misconception("""
    A query that sees nothing is no longer NaN, but it now looks evenly at keys that it must not see: a large negative
    number in place of -inf does that. In this course such a row has weights 0.
""")
def hidden_row_made_even(query, key, value, mask=None):
    scores = scaled_scores(query, key)
    weights = softmax(scores if mask is None else np.where(mask, -1e9, scores))
    return weights @ value, weights


@exercise.misconception("""
    The weights of a query that sees nothing are 0 now, but its output is still NaN: it was computed from the weights
    before you mended them.
""")
def output_of_a_hidden_row_left(query, key, value, mask=None):
    weights = _shares(_masked(scaled_scores(query, key), mask), -1, -1)
    return weights @ value, _zero_where_hidden(weights)


@exercise.misconception("""
    The output of a query that sees nothing is 0 now, but its weights are still NaN. Mend the weights: the output
    follows from them.
""")
def weights_of_a_hidden_row_left(query, key, value, mask=None):
    weights = _shares(_masked(scaled_scores(query, key), mask), -1, -1)
    return _zero_where_hidden(weights @ value), weights


@exercise.misconception("""
    The division by √d_k is gone: it was not one of the faults. Compare each change of yours with what it mends.
""")
def scale_removed(query, key, value, mask=None):
    weights = softmax(_masked(dot_products(query, key), mask))
    return weights @ value, weights


@exercise.misconception("""
    The mask works the other way round now. True hides in this course, as it did in the function you were given; that
    was not one of its faults.
""")
def mask_turned_round(query, key, value, mask=None):
    return attention.scaled_dot_product_attention(query, key, value, None if mask is None else ~mask)


for form in ACCEPTED_FORMS:
    exercise.alternative(form)
