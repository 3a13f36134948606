"""Check `scaling_exponent`: the slope of a line through logarithms."""

import math
import statistics

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.complexity import CHAPTER
from autograder.program import Program, call
from course_lib import scaling

SIZES = [16, 48, 64, 200, 512]  # no equal steps, on no scale
NOISE = 0.3  # of the logarithm


def power(draw: Draw, exponent: float, sizes: list[int] = SIZES) -> Program:
    """Draw a factor far from 1 and make exact powers."""
    factor = draw.number(3e-4, 9e-4)
    return call(list(sizes), [factor * size**exponent for size in sizes])


def noisy(draw: Draw) -> Program:
    """Bend the powers, the first cost down and the last one up, and the others at random."""
    exponent, factor = draw.number(0.8, 2.5), draw.number(3.0, 90.0)
    bends = [-NOISE, *(draw.number(-NOISE, NOISE) for _ in SIZES[2:]), NOISE]
    return call(
        list(SIZES), [factor * size**exponent * math.exp(bend) for size, bend in zip(SIZES, bends, strict=True)]
    )


def out_of_order(draw: Draw) -> Program:
    """Give the sizes in another order, as measurements may come."""
    order = [3, 0, 4, 2, 1]
    program = noisy(draw)
    sizes, costs = program.steps[0].args
    return call([sizes[place] for place in order], [costs[place] for place in order])


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=scaling.scaling_exponent,
    returns=("the exponent",),
    tolerance=1e-6,
    cases=[
        Case("an exact power 1.7", lambda draw: power(draw, 1.7)),
        Case("noisy costs", noisy),
        Case("exact squares", lambda draw: power(draw, 2.0), hidden=True),
        Case("costs that fall", lambda draw: power(draw, draw.number(-1.5, -0.5)), hidden=True),
        Case("noisy costs out of order", out_of_order, hidden=True),
        Case("two sizes", lambda draw: power(draw, draw.number(0.5, 2.5), [30, 700]), hidden=True),
    ],
)


def _logs(*lists):
    return [np.log(np.array(one, dtype=float)) for one in lists]


def _slope(x, y):
    return float(np.polyfit(x, y, 1)[0])


@exercise.misconception("""
    Your result is the slope of a line through the costs themselves; its value depends on the unit of the costs. Take
    the logarithm of both first: cost = factor · size^p becomes log cost = log factor + p · log size.
""")
def no_logarithm(sizes, costs):
    return _slope(np.array(sizes, dtype=float), np.array(costs))


@exercise.misconception("""
    You took the logarithm of the costs alone. That would find the rate of an exponential; for a power both axes need
    it.
""")
def logarithm_of_costs_alone(sizes, costs):
    return _slope(np.array(sizes, dtype=float), np.log(costs))


@exercise.misconception("""
    You took the logarithm of the sizes alone. Both axes need it.
""")
def logarithm_of_sizes_alone(sizes, costs):
    return _slope(np.log(sizes), np.array(costs))


@exercise.misconception("""
    The two axes are exchanged: on exact data your result is 1/p. The costs are what is explained, by the sizes.
""")
def axes_exchanged(sizes, costs):
    x, y = _logs(sizes, costs)
    return _slope(y, x)


@exercise.misconception("""
    Your line is forced through the origin, as if the factor were 1. Multiply all costs by 1000: should the exponent
    change? Let the line have an intercept.
""")
def through_the_origin(sizes, costs):
    x, y = _logs(sizes, costs)
    return float(x @ y / (x @ x))


@exercise.misconception("""
    You divide log cost by log size, and average. That leaves the factor in: only **differences** of logarithms are
    free of it.
""")
def mean_of_quotients(sizes, costs):
    x, y = _logs(sizes, costs)
    return float((y / x).mean())


@exercise.misconception("""
    Your result uses the two ends alone. On exact powers that is enough; measurements are noisy, and least squares
    lets all of them speak.
""")
def two_ends(sizes, costs):
    x, y = _logs(sizes, costs)
    return float((y[-1] - y[0]) / (x[-1] - x[0]))


@exercise.misconception("""
    Your result is the mean of the slopes from each point to the next. Short steps count as much as long ones in it,
    and noise counts most in them. Least squares fits one line to all points.
""")
def mean_of_local_slopes(sizes, costs):
    x, y = _logs(sizes, costs)
    return float((np.diff(y) / np.diff(x)).mean())


@exercise.misconception("""
    You return the ratio of the last two costs. If the size doubles, a power p gives the ratio 2^p; what undoes that,
    and what if the size does not double?
""")
def last_ratio(sizes, costs):
    return costs[-1] / costs[-2]


@exercise.misconception("""
    You take log₂ of the ratio of the last two costs, which is right when the size doubles. These sizes do not.
""")
def doubling_assumed(sizes, costs):
    return math.log2(costs[-1] / costs[-2])


@exercise.misconception("""
    You return slope and intercept. The exponent is the slope alone.
""")
def whole_fit(sizes, costs):
    x, y = _logs(sizes, costs)
    return tuple(float(number) for number in np.polyfit(x, y, 1))


@exercise.misconception("""
    Your logarithms have different bases on the two axes, so the slope is off by the factor between them. Any base will
    do, if it is the same.
""")
def two_bases(sizes, costs):
    return _slope(np.log(sizes), np.log10(costs))


@exercise.misconception("""
    Your result is a correlation: how well a line fits, always between −1 and 1. Asked for is how steep the line is.
""")
def correlation(sizes, costs):
    x, y = _logs(sizes, costs)
    return float(np.corrcoef(x, y)[0, 1])


@exercise.alternative
def by_polyfit(sizes, costs):
    return np.polyfit(np.log(sizes), np.log(costs), 1)[0]


@exercise.alternative
def by_linear_regression(sizes, costs):
    return statistics.linear_regression([math.log(n) for n in sizes], [math.log(c) for c in costs]).slope


@exercise.alternative
def by_least_squares_in_base_two(sizes, costs):
    x, y = np.log2(sizes), np.log2(costs)
    table = np.stack([x, np.ones(len(x))], axis=1)
    return float(np.linalg.lstsq(table, y, rcond=None)[0][0])


@exercise.alternative
def by_covariance(sizes, costs):
    table = np.cov(np.log10(sizes), np.log10(costs))
    return table[0, 1] / table[0, 0]


@exercise.alternative
def in_plain_python(sizes, costs):
    x, y = [math.log(n) for n in sizes], [math.log(c) for c in costs]
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - middle_x) ** 2 for a in x)
