"""Check `expected_score_std`: how far scores spread, and what the division by √d_k is for."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.attention import CHAPTER
from autograder.program import Program, Run, call
from course_lib import attention

SINGLE_PRECISION = 1e-6  # a root taken in float32 is as exact a formula as any
ESTIMATE_TOLERANCE = 0.02  # what a careful simulation reaches


def raw(draw: Draw, low: int, high: int) -> Program:
    """Ask for a raw score's spread at a width between two."""
    return call(draw.integer(low, high), False)


def scaled(draw: Draw, low: int, high: int) -> Program:
    """Ask for a scaled score's spread at a width between two."""
    return call(draw.integer(low, high), True)


def looks_simulated(program: Program, found: Run) -> str | None:
    """Give a sentence for a number that is near the exact one, but not it."""
    answer, exact = float(found.outcomes[0]), attention.expected_score_std(*program.steps[0].args)
    if abs(answer - exact) > ESTIMATE_TOLERANCE * exact:
        return None
    return (
        f"{answer:.6g} is close, but not exact. If you simulated it, keep the simulation as a test: it gives an "
        "estimate, and the exact value has a closed form in d_k"
    )


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=attention.expected_score_std,
    returns=("the standard deviation",),
    properties=[looks_simulated],
    tolerance=SINGLE_PRECISION,
    cases=[
        Case("a raw score", lambda draw: raw(draw, 3, 15)),
        Case("a scaled score", lambda draw: scaled(draw, 3, 15)),
        Case("a raw score of a wide head", lambda draw: raw(draw, 64, 512), hidden=True),
        Case("a scaled score of a wide head", lambda draw: scaled(draw, 64, 512), hidden=True),
        Case("one feature, raw", lambda draw: call(1, False), hidden=True),
        Case("one feature, scaled", lambda draw: call(1, True), hidden=True),
    ],
)


@exercise.misconception("""
    You return the variance. The d_k products have variance 1 each, and variances of independent terms add up; the
    standard deviation is the root of that sum.
""")
def variance_instead_of_deviation(d_k, scaled):
    return 1.0 if scaled else float(d_k)


@exercise.misconception("""
    You let the d_k products add up as if all had the same sign: values around 1 in, d_k out. Independent products
    with mean 0 mostly cancel: their variances add, their deviations do not. Sum 512 random signs a few times: how
    far from 0 do you get?
""")
def deviations_added(d_k, scaled):
    return math.sqrt(d_k) if scaled else float(d_k)


@exercise.misconception("""
    Your raw score has standard deviation 1, like a single product. A score sums d_k of them. What does each further
    independent term do to the variance?
""")
def sum_spreads_like_one_product(d_k, scaled):
    return 1 / math.sqrt(d_k) if scaled else 1.0


@exercise.misconception("""
    You divide the score by d_k. Attention divides by √d_k. Which of the two makes the spread the same at every width?
""")
def scaled_by_width(d_k, scaled):
    return 1 / math.sqrt(d_k) if scaled else math.sqrt(d_k)


@exercise.misconception("""
    Your answer does not depend on `scaled`. Dividing all scores by a number divides their standard deviation by it
    too.
""")
def scaled_ignored(d_k, scaled):
    return math.sqrt(d_k)


@exercise.misconception("""
    Raw and scaled have changed places: `scaled=True` asks for the score after the division by √d_k.
""")
def scaled_the_wrong_way_round(d_k, scaled):
    return math.sqrt(d_k) if scaled else 1.0


@exercise.misconception("""
    You always answer 1. That holds for scaled scores; a raw score sums d_k products, and its spread grows with d_k.
    Draw some for d_k = 4 and d_k = 64.
""")
def always_one(d_k, scaled):
    return 1.0


@exercise.misconception("""
    Your variance is twice too large: you gave each product the variance 1 + 1 = 2. That is the rule for a sum. For
    a product of two independent entries with mean 0, variances multiply.
""")
def product_has_variance_two(d_k, scaled):
    return math.sqrt(2.0) if scaled else math.sqrt(2 * d_k)


@exercise.misconception("""
    You count d_k - 1 terms. One less than the count belongs to an estimate from a sample; here the variance is known
    and nothing is estimated, so all d_k terms count.
""")
def one_term_less(d_k, scaled):
    return math.sqrt(d_k - 1) / (math.sqrt(d_k) if scaled else 1)


@exercise.misconception("""
    Your value is only an estimate from random draws, so it changes from one run to the next. Add up the variances of
    the d_k products on paper: that gives the exact value for any width.
""")
def simulated_with_a_fixed_seed(d_k, scaled):
    generator = np.random.default_rng(0)
    products = generator.standard_normal((2_000, d_k)) * generator.standard_normal((2_000, d_k))
    return float(products.sum(-1).std()) / (math.sqrt(d_k) if scaled else 1)


@exercise.alternative
def root_by_power(d_k, scaled):
    return 1 if scaled else d_k**0.5


@exercise.alternative
def from_the_variance(d_k, scaled):
    variance = sum(1.0 for _ in range(d_k))
    return np.sqrt(variance / d_k if scaled else variance)


@exercise.alternative
def deviation_divided(d_k, scaled):
    deviation = np.sqrt(d_k)
    return deviation / np.sqrt(d_k) if scaled else deviation


@exercise.alternative
def length_of_a_vector_of_ones(d_k, scaled):
    return np.linalg.norm(np.ones(d_k)) * (d_k**-0.5 if scaled else 1.0)
