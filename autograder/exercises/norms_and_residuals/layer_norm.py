"""Check `layer_norm`: each token over its own features, with the biased variance and eps inside the root."""

import numpy as np

from autograder.exercise import Case, Exercise
from autograder.exercises.norms_and_residuals import CHAPTER
from autograder.exercises.norms_and_residuals.accepted_layer_norms import ACCEPTED_FORMS
from autograder.exercises.norms_and_residuals.parts import (
    DEFAULT_EPS,
    HUGE,
    LARGE_EPS,
    TINY,
    mean_over,
    normalize,
    rows,
    rows_are_standardized,
    some_rows_constant,
    standard_deviation,
    tokens,
    with_gain_and_bias,
)
from course_lib import normalization

LIBRARY_NORMS = (
    "torch.nn.functional.layer_norm",
    "torch.layer_norm",
    "torch.native_layer_norm",
    "torch.nn.functional.group_norm",
    "torch.group_norm",
    "torch.nn.functional.instance_norm",
    "torch.nn.functional.batch_norm",
)

exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=normalization.layer_norm,
    returns=("the result",),
    properties=[rows_are_standardized],
    forbids=LIBRARY_NORMS,
    forbids_because="this exercise asks you to build the norm from a mean and a variance",
    cases=[
        Case("tokens of one sequence", lambda draw: with_gain_and_bias(draw, tokens(draw))),
        Case("a batch of sequences", lambda draw: with_gain_and_bias(draw, tokens(draw, leading=2))),
        Case("tiny numbers", lambda draw: with_gain_and_bias(draw, tokens(draw, leading=2, scale=TINY))),
        Case("another batch", lambda draw: with_gain_and_bias(draw, tokens(draw, leading=2)), hidden=True),
        Case("a batch of several heads", lambda draw: with_gain_and_bias(draw, tokens(draw, leading=3)), hidden=True),
        Case("one token alone", lambda draw: with_gain_and_bias(draw, tokens(draw, leading=0)), hidden=True),
        Case("a large eps", lambda draw: with_gain_and_bias(draw, tokens(draw, 2), eps=LARGE_EPS), hidden=True),
        Case("a token of equal numbers", lambda draw: with_gain_and_bias(draw, some_rows_constant(draw)), hidden=True),
        Case("huge numbers", lambda draw: with_gain_and_bias(draw, tokens(draw, 2, HUGE)), hidden=True),
        Case("a cube", lambda draw: with_gain_and_bias(draw, rows(draw, 4, 4, 4)), hidden=True),
        Case("float32", lambda draw: with_gain_and_bias(draw, tokens(draw, 2)), hidden=True, dtype="float32"),
    ],
)


@exercise.misconception("""
    Your mean and variance run along the sequence: each feature is normalized over all tokens, so a token's result
    moves when another token does. (Document A's formula says it like this, and twenty lines below its own code comment
    says the opposite.) A norm of a token should need that token alone. Which axis holds the features of one token?
""")
def over_the_sequence(x, gain, bias, eps=DEFAULT_EPS):
    return gain * normalize(x, -2, eps) + bias


@exercise.misconception("""
    One sequence works, a batch does not: axis 1 holds the features of a (sequence, feature) array, but the sequence
    of a (batch, sequence, feature) array. Count from the end: the features are always the last axis.
""")
def over_axis_one(x, gain, bias, eps=DEFAULT_EPS):
    return gain * normalize(x, 1, eps) + bias


@exercise.misconception("""
    You take one mean and one variance for a whole sequence, over tokens and features together. Each token should have
    its own. Change the last token of a sequence: does your result for the first one stay?
""")
def over_tokens_and_features(x, gain, bias, eps=DEFAULT_EPS):
    axes = tuple(range(x.ndim))[-2:]
    return gain * normalize(x, axes, eps) + bias


@exercise.misconception("""
    You take one mean and one variance for the whole array, so all tokens of all examples have a say in each result.
    Each token should have its own: `axis=-1` and `keepdims=True`.
""")
def over_everything(x, gain, bias, eps=DEFAULT_EPS):
    return gain * normalize(x, None, eps) + bias


@exercise.misconception("""
    Your results are too small by √((n - 1)/n), which is 0.935 for 8 features: you divide the sum of squares by n - 1.
    That is for estimating the spread of a population from a sample. A norm describes these n numbers and estimates
    nothing. (torch's `std` and `var` divide by n - 1 unless told otherwise, NumPy's by n.)
""")
def estimate_from_a_sample(x, gain, bias, eps=DEFAULT_EPS):
    centered = x - mean_over(x, -1)
    variance = (centered**2).sum(axis=-1, keepdims=True) / max(1, x.shape[-1] - 1)
    return gain * centered / np.sqrt(variance + eps) + bias


@exercise.misconception("""
    With numbers of ordinary size all is well; with tiny ones your results are too large. Your eps is added to the
    standard deviation. Here it stands inside the root, next to the variance. Work out both for a token whose
    variance is 1e-8: which of the two is dominated by eps = 1e-5?
""")
def eps_outside_the_root(x, gain, bias, eps=DEFAULT_EPS):
    return gain * (x - mean_over(x, -1)) / (standard_deviation(x) + eps) + bias


@exercise.misconception("""
    This is the form of the Annotated Transformer, a well-known tutorial: the standard deviation divides by n - 1, and
    eps is added outside the root. Here, as in the framework, the mean of the squares divides by n and eps stands
    inside.
""")
def form_of_the_annotated_transformer(x, gain, bias, eps=DEFAULT_EPS):
    ddof = min(1, x.shape[-1] - 1)
    return gain * (x - mean_over(x, -1)) / (standard_deviation(x, ddof) + eps) + bias


@exercise.misconception("""
    There is no eps in your root, so a token whose features are all equal is divided by 0. (Document B leaves eps out
    in one of its two formulas.) What should such a token give, once its mean is taken away?
""")
def no_eps(x, gain, bias, eps=DEFAULT_EPS):
    return gain * (x - mean_over(x, -1)) / standard_deviation(x) + bias


@exercise.misconception("""
    Your result does not depend on `eps`: a number of your own stands in its place. Models differ in it (BERT uses
    1e-12), so use the argument.
""")
def eps_of_its_own(x, gain, bias, eps=DEFAULT_EPS):
    return gain * normalize(x, -1, DEFAULT_EPS) + bias


@exercise.misconception("""
    You divide by the variance. Its unit is that of x squared; what brings the spread to 1 is its root. Check: double
    x, and the result should stay as it is.
""")
def divided_by_the_variance(x, gain, bias, eps=DEFAULT_EPS):
    centered = x - mean_over(x, -1)
    return gain * centered / (mean_over(centered**2, -1) + eps) + bias


@exercise.misconception("""
    No mean is removed: your result moves when the same number is added to all features of a token. Dividing by the
    root of the mean square alone is RMS norm, which is the next exercise.
""")
def no_mean_removed(x, gain, bias, eps=DEFAULT_EPS):
    return gain * x / np.sqrt(mean_over(x**2, -1) + eps) + bias


@exercise.misconception("""
    The mean is removed in the numerator only: your denominator is the root of the mean of x², not of (x - mean)². Give
    it a token like [101, 102, 103]: is its spread about 100, or about 1?
""")
def mean_square_in_the_denominator(x, gain, bias, eps=DEFAULT_EPS):
    return gain * (x - mean_over(x, -1)) / np.sqrt(mean_over(x**2, -1) + eps) + bias


@exercise.misconception("""
    The mean is removed in the variance only: your numerator is still x. Both need the distance to the mean.
""")
def mean_left_in_the_numerator(x, gain, bias, eps=DEFAULT_EPS):
    return gain * x / np.sqrt(x.var(axis=-1, keepdims=True) + eps) + bias


@exercise.misconception("""
    You divide by the mean distance |x - mean|. The formula divides by the root of the mean squared distance; for
    normal numbers the two differ by a fifth.
""")
def mean_absolute_distance(x, gain, bias, eps=DEFAULT_EPS):
    centered = x - mean_over(x, -1)
    return gain * centered / (mean_over(np.abs(centered), -1) + eps) + bias


@exercise.misconception("""
    Gain and bias have no effect on your result. After the norm each feature is multiplied by its own gain and moved by
    its own bias: that is what a layer learns.
""")
def gain_and_bias_ignored(x, gain, bias, eps=DEFAULT_EPS):
    return normalize(x, -1, eps)


@exercise.misconception("""
    The bias is missing: each feature is moved by its own bias at the end. (Some models do without, GPT-style codes
    with `bias=False` for example; this one has it.)
""")
def no_bias(x, gain, bias, eps=DEFAULT_EPS):
    return gain * normalize(x, -1, eps)


@exercise.misconception("""
    You apply gain and bias first and normalize afterwards. The norm then takes out what they put in: your tokens have
    mean 0 and variance 1 whatever was learned. Which of the two should have the last word?
""")
def gain_and_bias_before_the_norm(x, gain, bias, eps=DEFAULT_EPS):
    return normalize(gain * x + bias, -1, eps)


@exercise.misconception("""
    The bias is multiplied by the gain as well. Scale first, then move: the bias itself is not scaled.
""")
def bias_inside_the_gain(x, gain, bias, eps=DEFAULT_EPS):
    return gain * (normalize(x, -1, eps) + bias)


@exercise.misconception("""
    You multiply by 1 + gain. Some models store their gain as a distance from 1 (Gemma does); here `gain` is the factor
    itself, and a fresh layer has gain 1.
""")
def gain_as_a_distance_from_one(x, gain, bias, eps=DEFAULT_EPS):
    return (1 + gain) * normalize(x, -1, eps) + bias


@exercise.misconception("""
    Gain and bias have changed places: the order of the arguments is x, gain, bias.
""")
def gain_and_bias_exchanged(x, gain, bias, eps=DEFAULT_EPS):
    return bias * normalize(x, -1, eps) + gain


@exercise.misconception("""
    Your result is float64 although the inputs are not: a float64 number crept in and widened everything. Return the
    inputs' dtype; half the memory of a model depends on it.
""")
def result_in_float64(x, gain, bias, eps=DEFAULT_EPS):
    return normalization.layer_norm(x.astype(np.float64), gain, bias, eps)


@exercise.misconception("""
    You subtracted the mean from the caller's array itself. In a transformer that array is also the skip path, which
    then carries something else. Write `x = x - mean`, which makes a new array, instead of `x -= mean`.
""")
def input_changed_in_place(x, gain, bias, eps=DEFAULT_EPS):
    x -= mean_over(x, -1)
    x /= np.sqrt(mean_over(x**2, -1) + np.asarray(eps, x.dtype))
    return gain * x + bias


for form in ACCEPTED_FORMS:
    exercise.alternative(form)
