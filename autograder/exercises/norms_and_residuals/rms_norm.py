"""Check `rms_norm`: divide each token by the root of the mean of its squares."""

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.norms_and_residuals import CHAPTER
from autograder.exercises.norms_and_residuals.parts import (
    DEFAULT_EPS,
    HUGE,
    LARGE_EPS,
    MEAN,
    TINY,
    mean_over,
    some_rows_constant,
    tokens,
    with_gain,
)
from autograder.program import Program, call
from course_lib import normalization

LOUD = 100.0  # entries near 300: their squares are beyond float16, which ends at 65504


def loud_in_half_precision(draw: Draw) -> Program:
    """Draw numbers that float16 can hold, but whose squares it cannot."""
    width = draw.integer(4, 8)
    x = draw.uniform(3, width, low=2 * LOUD, high=MEAN * LOUD)
    return call(x, draw.uniform(width, low=0.5, high=1.5))


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=normalization.rms_norm,
    returns=("the result",),
    forbids=["torch.nn.functional.rms_norm", "torch.rms_norm", "torch.nn.functional.layer_norm"],
    forbids_because="this exercise asks you to build the norm from a mean of squares",
    cases=[
        Case("tokens of one sequence", lambda draw: with_gain(draw, tokens(draw))),
        Case("a batch of sequences", lambda draw: with_gain(draw, tokens(draw, leading=2))),
        Case("tiny numbers", lambda draw: with_gain(draw, tokens(draw, leading=2, scale=TINY))),
        Case("another batch", lambda draw: with_gain(draw, tokens(draw, leading=2)), hidden=True),
        Case("a batch of several heads", lambda draw: with_gain(draw, tokens(draw, leading=3)), hidden=True),
        Case("one token alone", lambda draw: with_gain(draw, tokens(draw, leading=0)), hidden=True),
        Case("a large eps", lambda draw: with_gain(draw, tokens(draw, leading=2), eps=LARGE_EPS), hidden=True),
        Case("a token of equal numbers", lambda draw: with_gain(draw, some_rows_constant(draw)), hidden=True),
        Case("a token of zeros", lambda draw: with_gain(draw, 0 * tokens(draw)), hidden=True),
        Case("huge numbers", lambda draw: with_gain(draw, tokens(draw, leading=2, scale=HUGE)), hidden=True),
        Case("float32", lambda draw: with_gain(draw, tokens(draw, leading=2)), hidden=True, dtype="float32"),
        Case("float16, loud", loud_in_half_precision, hidden=True, dtype="float16"),
    ],
)


def _precise(x):
    return x.astype(np.promote_types(x.dtype, np.float32))


@exercise.misconception("""
    You remove the mean first, as layer norm does. RMS norm does not: a token of equal numbers [3, 3, 3] should come
    out as ones times the gain, and yours comes out as zeros. What would a model save by leaving that step out?
""")
def mean_removed(x, gain, eps=DEFAULT_EPS):
    return normalization.layer_norm(x, gain, np.zeros_like(gain), eps)


@exercise.misconception("""
    Your denominator is the standard deviation, which removes a mean that your numerator still has. On a token
    [3, 3, 3] the standard deviation is 0, so you divide by almost nothing. Which root is 3 for that token?
""")
def variance_in_the_denominator(x, gain, eps=DEFAULT_EPS):
    precise = _precise(x)
    return (gain * precise / np.sqrt(precise.var(axis=-1, keepdims=True) + eps)).astype(x.dtype)


@exercise.misconception("""
    You remove the mean in the numerator, but divide by the root mean square of the numbers as they were. RMS norm
    removes no mean anywhere.
""")
def mean_removed_in_the_numerator(x, gain, eps=DEFAULT_EPS):
    precise = _precise(x)
    root = np.sqrt(mean_over(precise**2, -1) + eps)
    return (gain * (precise - mean_over(precise, -1)) / root).astype(x.dtype)


@exercise.misconception("""
    You divide by the length of the vector, the root of the sum of squares. The root of their mean is smaller by √d:
    then every entry has size about 1, however wide the token is.
""")
def divided_by_the_length(x, gain, eps=DEFAULT_EPS):
    precise = _precise(x)
    return (gain * precise / np.sqrt((precise**2).sum(-1, keepdims=True) + eps)).astype(x.dtype)


@exercise.misconception("""
    You multiply by the root mean square where you should divide: doubling x makes your result four times as large. If
    you prepared a reciprocal root, multiply by it instead of dividing.
""")
def multiplied_by_the_root(x, gain, eps=DEFAULT_EPS):
    precise = _precise(x)
    with np.errstate(over="ignore"):
        return (gain * precise * np.sqrt(mean_over(precise**2, -1) + eps)).astype(x.dtype)


@exercise.misconception("""
    You divide by the mean of the squares; the root is missing. Check: double x, and the result should stay as it is.
""")
def root_forgotten(x, gain, eps=DEFAULT_EPS):
    precise = _precise(x)
    return (gain * precise / (mean_over(precise**2, -1) + eps)).astype(x.dtype)


@exercise.misconception("""
    With numbers of ordinary size all is well; with tiny ones your results are too large. Your eps is added to the
    root. Here it stands inside, next to the mean of the squares. Work out both for a token whose mean square is 1e-8.
""")
def eps_outside_the_root(x, gain, eps=DEFAULT_EPS):
    precise = _precise(x)
    return (gain * precise / (np.sqrt(mean_over(precise**2, -1)) + eps)).astype(x.dtype)


@exercise.misconception("""
    There is no eps in your root, so a token of zeros, such as a padded place, becomes NaN, and tiny tokens are blown
    up to full size. Add eps to the mean of the squares.
""")
def no_eps(x, gain, eps=DEFAULT_EPS):
    precise = _precise(x)
    return (gain * precise / np.sqrt(mean_over(precise**2, -1))).astype(x.dtype)


@exercise.misconception("""
    Your result does not depend on `eps`: a number of your own stands in its place. Models differ in it, so use the
    argument.
""")
def eps_of_its_own(x, gain, eps=DEFAULT_EPS):
    return normalization.rms_norm(x, gain, DEFAULT_EPS)


@exercise.misconception("""
    You take one root mean square for a whole sequence. Each token should have its own. Make one token of a sequence
    ten times as large: do the others stay as they were?
""")
def over_tokens_and_features(x, gain, eps=DEFAULT_EPS):
    precise = _precise(x)
    axes = tuple(range(x.ndim))[-2:]
    return (gain * precise / np.sqrt(mean_over(precise**2, axes) + eps)).astype(x.dtype)


@exercise.misconception("""
    Your mean of squares runs along the sequence, so a token's result depends on the other tokens. Which axis holds the
    features of one token?
""")
def over_the_sequence(x, gain, eps=DEFAULT_EPS):
    precise = _precise(x)
    return (gain * precise / np.sqrt(mean_over(precise**2, -2) + eps)).astype(x.dtype)


@exercise.misconception("""
    The gain has no effect on your result. After the norm each feature is multiplied by its own gain: that is what the
    layer learns.
""")
def gain_ignored(x, gain, eps=DEFAULT_EPS):
    return normalization.rms_norm(x, np.ones_like(gain), eps)


@exercise.misconception("""
    You multiply by 1 + gain. Some models store their gain as a distance from 1 (Gemma does); here `gain` is the factor
    itself, and a fresh layer has gain 1.
""")
def gain_as_a_distance_from_one(x, gain, eps=DEFAULT_EPS):
    return normalization.rms_norm(x, 1 + gain, eps)


@exercise.misconception("""
    You divide by the mean of |x|. The formula squares, averages and takes the root, so that large entries count more.
""")
def mean_absolute_value(x, gain, eps=DEFAULT_EPS):
    precise = _precise(x)
    return (gain * precise / (mean_over(np.abs(precise), -1) + eps)).astype(x.dtype)


@exercise.misconception("""
    In float16 your result is 0 where numbers are large: 300 fits into half precision, 300² = 90,000 does not, and
    dividing by infinity gives 0. Raise the numbers to float32 before you square them, and return to the input's dtype
    at the end.
""")
def squared_in_half_precision(x, gain, eps=DEFAULT_EPS):
    with np.errstate(over="ignore"):
        squares = (x * x).astype(np.promote_types(x.dtype, np.float32))
    return (gain * x / np.sqrt(mean_over(squares, -1) + eps)).astype(x.dtype)


@exercise.misconception("""
    Your result is float64 although the inputs are not. Compute as precisely as you like, but return the inputs' dtype;
    half the memory of a model depends on it.
""")
def result_in_float64(x, gain, eps=DEFAULT_EPS):
    return normalization.rms_norm(x.astype(np.float64), gain.astype(np.float64), eps)


@exercise.misconception("""
    The result is right, but you scaled the caller's array itself. In a transformer that array is also the skip path,
    so x + f(norm(x)) then starts from something else. Make a new array instead of using `*=` or `/=`.
""")
def input_changed_in_place(x, gain, eps=DEFAULT_EPS):
    root = np.sqrt(mean_over(_precise(x) ** 2, -1) + eps).astype(x.dtype)
    x /= root
    return gain * x


@exercise.alternative
def by_a_reciprocal_root(x, gain, eps=DEFAULT_EPS):
    precise = x.astype(np.float32) if x.dtype == np.float16 else x
    return (precise * (np.mean(precise**2, axis=-1, keepdims=True) + eps) ** -0.5 * gain).astype(x.dtype)


@exercise.alternative
def cast_back_before_the_gain(x, gain, eps=DEFAULT_EPS):
    precise = _precise(x)
    return gain * (precise / np.sqrt(mean_over(np.square(precise), -1) + eps)).astype(x.dtype)


@exercise.alternative
def from_the_length_of_the_vector(x, gain, eps=DEFAULT_EPS):
    wide = x.astype(np.float64)
    mean_square = np.linalg.norm(wide, axis=-1, keepdims=True) ** 2 / x.shape[-1]
    return (gain * wide / np.sqrt(mean_square + eps)).astype(x.dtype)


@exercise.alternative
def by_einsum(x, gain, eps=DEFAULT_EPS):
    wide = x.astype(np.float64)
    mean_square = np.einsum("...d,...d->...", wide, wide)[..., None] / x.shape[-1]
    return (wide * gain / np.sqrt(mean_square + eps)).astype(x.dtype)


@exercise.alternative
def one_token_at_a_time(x, gain, eps=DEFAULT_EPS):
    result = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        row = x[place].astype(np.float64)
        result[place] = gain * row / np.sqrt(sum(row**2) / len(row) + eps)
    return result
