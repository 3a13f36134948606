"""Check `repaired_layer_norm`: a bug hunt. The function runs on one square sequence and has three faults."""

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.norms_and_residuals import CHAPTER
from autograder.exercises.norms_and_residuals.accepted_layer_norms import ACCEPTED_FORMS
from autograder.exercises.norms_and_residuals.layer_norm import LIBRARY_NORMS
from autograder.exercises.norms_and_residuals.parts import (
    DEFAULT_EPS,
    LARGE_EPS,
    TINY,
    mean_over,
    rows,
    rows_are_standardized,
    some_rows_constant,
    tokens,
    with_gain_and_bias,
)
from autograder.program import Program
from course_lib import normalization

Array = np.ndarray
Axis = int | tuple[int, ...]


def four_square_tokens(draw: Draw) -> Program:
    """Draw the (4, 4) array of document A, on which every axis gives the right shape."""
    return with_gain_and_bias(draw, rows(draw, 4, 4))


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=normalization.layer_norm,
    name="repaired_layer_norm",
    returns=("the result",),
    properties=[rows_are_standardized],
    forbids=LIBRARY_NORMS,
    forbids_because="this exercise asks you to repair the function, not to replace it",
    cases=[
        Case("4 tokens of 4 features", four_square_tokens),
        Case("tiny numbers", lambda draw: with_gain_and_bias(draw, tokens(draw, scale=TINY))),
        Case("a batch of sequences", lambda draw: with_gain_and_bias(draw, tokens(draw, leading=2))),
        Case("another batch", lambda draw: with_gain_and_bias(draw, tokens(draw, leading=2)), hidden=True),
        Case("a batch of several heads", lambda draw: with_gain_and_bias(draw, tokens(draw, leading=3)), hidden=True),
        Case("one token alone", lambda draw: with_gain_and_bias(draw, tokens(draw, leading=0)), hidden=True),
        Case("a large eps", lambda draw: with_gain_and_bias(draw, tokens(draw, 2), eps=LARGE_EPS), hidden=True),
        Case("a token of equal numbers", lambda draw: with_gain_and_bias(draw, some_rows_constant(draw)), hidden=True),
        Case("float32", lambda draw: with_gain_and_bias(draw, tokens(draw, 2)), hidden=True, dtype="float32"),
    ],
)


def _norm(
    x: Array, gain: Array, bias: Array, eps: float, *, mean_axis: Axis = -1, std_axis: Axis = -1, ddof=0, outside=False
) -> Array:
    """Compute the function with each of the faults left in or mended."""
    spread = x.std(axis=std_axis, keepdims=True, ddof=ddof)
    root = spread + eps if outside else np.sqrt(spread**2 + eps)
    return gain * (x - mean_over(x, mean_axis)) / root + bias


@exercise.misconception("""
    This is the function as you found it: none of the three faults is mended yet. Give it an array that is not square,
    and print the mean of each token before gain and bias come in.
""")
def starter_unchanged(x, gain, bias, eps=DEFAULT_EPS):
    return _norm(x, gain, bias, eps, mean_axis=-2, std_axis=-2, ddof=1, outside=True)


@exercise.misconception("""
    One fault is left: mean and spread still run over the tokens of a sequence, so a token's result moves when another
    one does. Which axis holds the features of one token?
""")
def axis_left(x, gain, bias, eps=DEFAULT_EPS):
    return _norm(x, gain, bias, eps, mean_axis=-2, std_axis=-2)


@exercise.misconception("""
    One fault is left: your rows come out too small by √((n - 1)/n). The spread of these n numbers is described, not
    estimated, so nothing is taken off n.
""")
def estimate_left(x, gain, bias, eps=DEFAULT_EPS):
    return _norm(x, gain, bias, eps, ddof=min(1, x.shape[-1] - 1))


@exercise.misconception("""
    One fault is left, and it shows with tiny numbers only: eps is added to the root. Put it inside, next to the
    variance.
""")
def eps_left(x, gain, bias, eps=DEFAULT_EPS):
    return _norm(x, gain, bias, eps, outside=True)


@exercise.misconception("""
    Eps stands inside the root now; two faults are left. Print the variance of each token of your result, before gain
    and bias, and then change one token and see which results move.
""")
def axis_and_estimate_left(x, gain, bias, eps=DEFAULT_EPS):
    return _norm(x, gain, bias, eps, mean_axis=-2, std_axis=-2, ddof=1)


@exercise.misconception("""
    The spread is described, not estimated, now; two faults are left. One is about which numbers belong to one group,
    the other shows when the numbers are tiny.
""")
def axis_and_eps_left(x, gain, bias, eps=DEFAULT_EPS):
    return _norm(x, gain, bias, eps, mean_axis=-2, std_axis=-2, outside=True)


@exercise.misconception("""
    The axis is right now; two faults are left, both in the denominator. Compare your result for the token [1, 2, 3, 4]
    with your own computation on paper, and then for a token ten thousand times smaller.
""")
def estimate_and_eps_left(x, gain, bias, eps=DEFAULT_EPS):
    return _norm(x, gain, bias, eps, ddof=min(1, x.shape[-1] - 1), outside=True)


@exercise.misconception("""
    You mended the axis of the mean, but the spread still runs over the tokens: the two belong to the same token.
""")
def axis_of_the_spread_left(x, gain, bias, eps=DEFAULT_EPS):
    return _norm(x, gain, bias, eps, std_axis=-2)


@exercise.misconception("""
    You mended the axis of the spread, but the mean still runs over the tokens: the two belong to the same token.
""")
def axis_of_the_mean_left(x, gain, bias, eps=DEFAULT_EPS):
    return _norm(x, gain, bias, eps, mean_axis=-2)


@exercise.misconception("""
    Eps is inside the root now, but next to the standard deviation, which was never squared: you take the root of a
    root. Inside the root of layer norm stands the variance.
""")
def root_of_the_deviation(x, gain, bias, eps=DEFAULT_EPS):
    return gain * (x - mean_over(x, -1)) / np.sqrt(x.std(axis=-1, keepdims=True) + eps) + bias


@exercise.misconception("""
    The root is gone: you divide by variance plus eps. Mending the place of eps should keep the root around both.
""")
def root_lost(x, gain, bias, eps=DEFAULT_EPS):
    return gain * (x - mean_over(x, -1)) / (x.var(axis=-1, keepdims=True) + eps) + bias


@exercise.misconception("""
    Eps is inside the root now, but squared. Layer norm adds eps itself to the variance.
""")
def eps_squared(x, gain, bias, eps=DEFAULT_EPS):
    return _norm(x, gain, bias, eps**2)


@exercise.misconception("""
    Eps is gone altogether, and a token of equal numbers is now divided by 0. Its place was wrong, not its presence.
""")
def eps_removed(x, gain, bias, eps=DEFAULT_EPS):
    return _norm(x, gain, bias, 0.0)


@exercise.misconception("""
    Mean and spread now run over a whole sequence at once. One group of numbers is one token: a single axis.
""")
def over_tokens_and_features(x, gain, bias, eps=DEFAULT_EPS):
    axes = tuple(range(x.ndim))[-2:]
    return _norm(x, gain, bias, eps, mean_axis=axes, std_axis=axes)


for form in ACCEPTED_FORMS:
    exercise.alternative(form)
