"""Check `weighted_mean`: the small exercise on which the start page shows how checks work."""

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.start_here import CHAPTER
from autograder.program import Program, call
from course_lib.weighted_mean import weighted_mean as reference


def drawn(draw: Draw, low: int, high: int, scale: float = 1.0) -> Program:
    """Draw values, and weights that do not sum to 1."""
    number = draw.integer(low, high)
    return call(draw.normal(number), draw.uniform(number, low=0.2 * scale, high=3.0 * scale))


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=reference,
    returns=("the weighted mean",),
    cases=[
        Case("three values by hand", lambda draw: call(np.array([10.0, 20.0, 40.0]), np.array([2.0, 1.0, 1.0]))),
        Case("some values", lambda draw: drawn(draw, 4, 7)),
        Case("many values with small weights", lambda draw: drawn(draw, 30, 60, scale=0.01), hidden=True),
        Case("a weight of zero", lambda draw: call(draw.normal(3), np.array([0.0, 0.5, 1.5])), hidden=True),
        Case("a single value", lambda draw: call(draw.normal(1), np.array([0.25])), hidden=True),
    ],
)


@exercise.misconception("""
    Your result is the plain mean: every value counts the same. Double one weight: nothing moves. Where do the weights
    come in?
""")
def weights_ignored(values, weights):
    return float(values.mean())


@exercise.misconception("""
    Your result grows with the weights: double all of them, and it doubles. A mean must not. What do you have to
    divide by, so that only the shares count?
""")
def not_divided(values, weights):
    return float((weights * values).sum())


@exercise.misconception("""
    You divide by the number of values. That is right only when the weights sum to that number. Try weights that are
    all 10: the mean of equal values should be that value.
""")
def divided_by_the_count(values, weights):
    return float((weights * values).mean())


@exercise.misconception("""
    You divide by the sum of the values. With that, the result says how heavy the values are, not what they are on
    average. Which sum makes the shares add up to 1?
""")
def divided_by_the_values(values, weights):
    return float((weights * values).sum() / values.sum())


@exercise.misconception("""
    You return one weighted value for each weight; they still have to be added. The mean is one number.
""")
def not_added(values, weights):
    return weights * values / weights.sum()


@exercise.alternative
def by_numpy(values, weights):
    return np.average(values, weights=weights)


@exercise.alternative
def as_a_dot_product(values, weights):
    return weights @ values / np.sum(weights)


@exercise.alternative
def with_a_loop(values, weights):
    total = weight_sum = 0.0
    for value, weight in zip(values, weights, strict=True):
        total += weight * value
        weight_sum += weight
    return total / weight_sum


@exercise.alternative
def shares_first(values, weights):
    shares = weights / weights.sum()
    return sum(share * value for share, value in zip(shares, values, strict=True))
