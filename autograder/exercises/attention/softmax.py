"""Check `softmax`: scores to shares, stable, over the last axis."""

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.attention import CHAPTER
from autograder.exercises.attention.parts import softmax_over
from autograder.exercises.attention.properties import dtype_kept, weights_alone
from autograder.program import Program, call
from course_lib import attention

FAR = 1000.0  # exp overflows float64 above 709
HABITUAL_EPSILON = 1e-6


def table(draw: Draw) -> Program:
    """Draw a table that is not square."""
    rows, columns = draw.sizes(2)
    return call(draw.normal(rows, columns))


def huge_scores(draw: Draw) -> Program:
    """Put scores at plus and minus a thousand into one row, and keep another far below it."""
    rows, columns = draw.sizes(2, low=3)
    scores = draw.normal(rows, columns)
    scores[0, 0] += FAR
    scores[0, 1] -= FAR
    scores[1] -= FAR
    return call(scores)


def some_hidden(draw: Draw) -> Program:
    """Set some scores of every row to -inf."""
    rows, columns = draw.sizes(2)
    scores = draw.normal(rows, columns)
    scores[draw.mask(rows, columns)] = -np.inf
    return call(scores)


def one_row_hidden(draw: Draw) -> Program:
    """Set every score of one row to -inf."""
    rows, columns = draw.sizes(2)
    scores = draw.normal(rows, columns)
    scores[draw.integer(0, rows - 1)] = -np.inf
    return call(scores)


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=attention.softmax,
    returns=("weights",),
    properties=[dtype_kept, weights_alone],
    forbids=[
        "scipy.special.softmax",
        "scipy.special.log_softmax",
        "torch.softmax",
        "torch.Tensor.softmax",
        "torch.special.softmax",
        "torch.log_softmax",
        "torch.Tensor.log_softmax",
        "torch.special.log_softmax",
        "torch.nn.functional.softmax",
        "torch.nn.functional.log_softmax",
    ],
    forbids_because="this exercise asks you to build the softmax from `exp` and a sum",
    cases=[
        Case("a table of scores", table),
        Case("one row", lambda draw: call(draw.normal(draw.integer(3, 8)))),
        Case("scores near plus and minus a thousand", huge_scores),
        Case("three axes", lambda draw: call(draw.normal(*draw.sizes(3))), hidden=True),
        Case("four axes, large scores", lambda draw: call(draw.normal(*draw.sizes(4), scale=FAR)), hidden=True),
        Case("some scores are -inf", some_hidden, hidden=True),
        Case("a row of -inf", one_row_hidden, hidden=True),
        Case("one score per row", lambda draw: call(draw.normal(draw.integer(2, 8), 1)), hidden=True),
        Case("float32", table, hidden=True, dtype="float32"),
        Case("float16", table, hidden=True, dtype="float16"),
    ],
)


@exercise.misconception("""
    `exp` overflows: it has no float64 for scores above 709. Subtract each row's maximum first: taking the same
    amount from every score of a row changes no weight. Why not? Try it on [1, 2, 3] and [101, 102, 103].
""")
def no_maximum_subtracted(scores):
    exponentials = np.exp(scores)
    return exponentials / exponentials.sum(-1, keepdims=True)


@exercise.misconception("""
    A row far below the others becomes 0/0: you subtract one maximum, that of the whole array, so all exponentials
    of that row vanish. Every row needs its own maximum.
""")
def one_maximum_for_all_rows(scores):
    exponentials = np.exp(scores - scores.max())
    return exponentials / exponentials.sum(-1, keepdims=True)


@exercise.misconception("""
    You subtract the mean of each row. That is harmless, but it does not help: a score far above the mean still
    overflows `exp`. What must you subtract so that no exponent is above 0?
""")
def mean_subtracted(scores):
    exponentials = np.exp(scores - scores.mean(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


@exercise.misconception("""
    Your softmax runs over axis 1. That is the last axis of a table, but not of one row, nor of a batch of tables.
    Which number means "the last axis" however many there are?
""")
def over_axis_one(scores):
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


@exercise.misconception("""
    Each column of your weights sums to 1, but each row should: you sum over the first axis. A row belongs to one
    query, and its scores compete with each other. Print `weights.sum(axis=0)` and `weights.sum(axis=-1)`.
""")
def over_the_first_axis(scores):
    return softmax_over(0, scores)


@exercise.misconception("""
    All your weights together sum to 1, but each row should do so by itself. A sum without `axis` runs over the
    whole array. Try two rows: what should they sum to, and what do they?
""")
def over_the_whole_array(scores):
    exponentials = np.exp(scores - scores.max())
    return exponentials / exponentials.sum()


@exercise.misconception("""
    The sum of the rows has lost its axis, so it no longer lines up with the rows: with (rows, columns) scores, an
    array of `rows` sums is stretched along the columns. What does `keepdims=True` do to the shape of a sum?
""")
def axis_of_the_sum_lost(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1)


@exercise.misconception("""
    You divide the scores by their sum, without `exp`. Scores may be negative, and shares may not. What does `exp`
    do with a negative score?
""")
def no_exponential(scores):
    return scores / scores.sum(-1, keepdims=True)


@exercise.misconception("""
    Your results are the logarithms of the weights: all are below 0. A loss likes these; an average needs the
    weights themselves.
""")
def logarithm_of_the_weights(scores):
    shifted = scores - scores.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


@exercise.misconception("""
    Each score is turned into a number between 0 and 1 by itself (a sigmoid). In a softmax the scores of a row
    compete: if one grows, the others' shares must shrink. Raise one score and see what your other weights do.
""")
def sigmoid_of_each_score(scores):
    return np.exp(-np.logaddexp(0, -scores))


@exercise.misconception("""
    Your rows sum to a little less than 1: a small number was added to the sum. With the maximum subtracted, the
    largest exponential is exp(0) = 1, so the sum can never be 0 while one score is finite.
""")
def small_number_in_the_sum(scores):
    return attention.softmax(scores) / (1 + HABITUAL_EPSILON)


@exercise.misconception("""
    A row of -inf becomes NaN: its maximum is -inf, and -inf minus -inf has no value. Such a row has nothing to
    look at, and here its weights are 0. Which two numbers must you guard, before `exp` and before the division?
""")
def nan_for_a_hidden_row(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


@exercise.misconception("""
    A row of -inf gets equal weights: you replaced -inf by a large negative number, and when a whole row has it,
    the softmax shares evenly. Nothing is visible in such a row, so here its weights are 0.
""")
def even_for_a_hidden_row(scores):
    return attention.softmax(np.where(np.isneginf(scores), -1e9, scores))


@exercise.misconception("""
    The weights are right, but you have overwritten the caller's scores: `-=` and `out=` work in the array that was
    handed in. Write the difference to a new array.
""")
def scores_overwritten(scores):
    weights = attention.softmax(scores)
    scores -= scores.max(-1, keepdims=True)
    return weights


@exercise.misconception("""
    Your weights are float64 although the scores are not: a float64 array crept in and widened everything. Return
    the dtype of the scores; half the memory of a model depends on it.
""")
def result_in_float64(scores):
    return attention.softmax(scores.astype(np.float64))


@exercise.alternative
def through_the_logarithm_of_the_sum(scores):
    peak = np.where(np.isneginf(scores.max(-1, keepdims=True)), 0, scores.max(-1, keepdims=True))
    total = np.exp(scores - peak).sum(-1, keepdims=True)
    return np.exp(scores - peak - np.log(np.where(total == 0, 1, total)))


@exercise.alternative
def by_logaddexp(scores):
    total = np.logaddexp.reduce(scores, axis=-1, keepdims=True)
    return np.exp(scores - np.where(np.isneginf(total), 0, total))


@exercise.alternative
def nan_turned_to_zero(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return np.nan_to_num(exponentials / exponentials.sum(-1, keepdims=True))


@exercise.alternative
def row_by_row(scores):
    weights = np.zeros_like(scores)
    for index in np.ndindex(scores.shape[:-1]):
        row = scores[index]
        if np.isfinite(row).any():
            exponentials = np.exp(row - row.max())
            weights[index] = exponentials / exponentials.sum()
    return weights


@exercise.alternative
def in_float64_then_cast(scores):
    return attention.softmax(scores.astype(np.float64)).astype(scores.dtype)


@exercise.alternative
def hidden_by_where(scores):
    visible = np.isfinite(scores)
    peak = scores.max(-1, keepdims=True, initial=np.finfo(scores.dtype).min)
    exponentials = np.where(visible, np.exp(scores - peak), 0)
    return exponentials / np.maximum(exponentials.sum(-1, keepdims=True), np.finfo(scores.dtype).tiny)
