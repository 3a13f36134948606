"""Check `xavier_uniform_bound`: how far from 0 the first weights may lie."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.feed_forward import CHAPTER
from autograder.program import Program, call
from course_lib import feed_forward


def layer(draw: Draw) -> Program:
    """Draw the two sizes of a layer, far from each other."""
    return call(draw.integer(10, 60), draw.integer(200, 900))


def with_gain(draw: Draw) -> Program:
    """Draw a gain that is neither 1 nor its own square."""
    return call(draw.integer(200, 900), draw.integer(10, 60), draw.number(1.3, 2.0))


def named_gain(draw: Draw) -> Program:
    """Pass the gain by its name; it is below 1."""
    return call(draw.integer(10, 60), draw.integer(200, 900), gain=draw.number(0.3, 0.8))


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=feed_forward.xavier_uniform_bound,
    returns=("the bound",),
    forbids=["torch.nn.init.xavier_uniform_", "torch.nn.init.xavier_normal_"],
    forbids_because="this exercise asks for the formula behind it",
    cases=[
        Case("BERT's first layer", lambda draw: call(768, 3072)),
        Case("a narrow and a wide side", layer),
        Case("with a gain", with_gain),
        Case("other sizes", layer, hidden=True),
        Case("a gain below 1, by name", named_gain, hidden=True),
    ],
)


@exercise.misconception("""
    Your number is √3 too small: it is the standard deviation. Uniform numbers between -b and b have a standard
    deviation of b/√3, so the bound lies further out.
""")
def standard_deviation(d_in, d_out, gain=1.0):
    return gain * math.sqrt(2 / (d_in + d_out))


@exercise.misconception("""
    Your number does not depend on d_out. Counting only the inputs keeps the forward signal, and is known from He's
    and LeCun's rules; Glorot's is a compromise between the way forward (d_in) and the way back (d_out).
""")
def inputs_alone(d_in, d_out, gain=1.0):
    return gain * math.sqrt(3 / d_in)


@exercise.misconception("""
    This is He's rule, √(6 / d_in), made for ReLU. Glorot's looks at both sides: which sum stands under the root?
""")
def he_bound(d_in, d_out, gain=1.0):
    return gain * math.sqrt(6 / d_in)


@exercise.misconception("""
    You return the square: the root is missing. A variance goes with 1/size, a bound with its root.
""")
def root_forgotten(d_in, d_out, gain=1.0):
    return gain * 6 / (d_in + d_out)


@exercise.misconception("""
    Your bound is √2 too large. The wanted variance is 2 / (d_in + d_out), one over the **mean** of the two sizes;
    take care to halve only once.
""")
def mean_halved_twice(d_in, d_out, gain=1.0):
    return gain * math.sqrt(12 / (d_in + d_out))


@exercise.misconception("""
    Your bound is √2 too small. The wanted variance is 2 / (d_in + d_out), and a uniform number has variance b²/3:
    3 · 2 = 6 stands above the line.
""")
def three_above_the_line(d_in, d_out, gain=1.0):
    return gain * math.sqrt(3 / (d_in + d_out))


@exercise.misconception("""
    You return the width of the whole interval, from -b to b. The bound is half of it.
""")
def whole_interval(d_in, d_out, gain=1.0):
    return 2 * gain * math.sqrt(6 / (d_in + d_out))


@exercise.misconception("""
    The gain has no influence on your bound. It multiplies every weight, and so the bound.
""")
def gain_ignored(d_in, d_out, gain=1.0):
    return math.sqrt(6 / (d_in + d_out))


@exercise.misconception("""
    The gain stands under your root. It multiplies the weights themselves: twice the gain is twice the bound, and four
    times the variance.
""")
def gain_under_the_root(d_in, d_out, gain=1.0):
    return math.sqrt(gain * 6 / (d_in + d_out))


@exercise.misconception("""
    You divide by the gain. It makes up for what an activation loses, so more gain means larger weights.
""")
def divided_by_gain(d_in, d_out, gain=1.0):
    return math.sqrt(6 / (d_in + d_out)) / gain


@exercise.misconception("""
    Your number depends on the product of the two sizes. Signal is summed over d_in entries forward and over d_out
    entries backward; the rule takes the mean of the two.
""")
def product_of_sizes(d_in, d_out, gain=1.0):
    return gain * math.sqrt(6 / (d_in * d_out))


@exercise.alternative
def by_variance(d_in, d_out, gain=1.0):
    variance = gain**2 * 2 / (d_in + d_out)
    return (3 * variance) ** 0.5


@exercise.alternative
def by_standard_deviation(d_in, d_out, gain=1.0):
    return np.sqrt(3.0) * gain * np.sqrt(2.0 / (d_in + d_out))


@exercise.alternative
def one_over_the_mean(d_in, d_out, gain=1.0):
    return gain * math.sqrt(3 / ((d_in + d_out) / 2))


@exercise.alternative
def as_an_array_of_no_axes(d_in, d_out, gain=1.0):
    return np.array(gain * (6 / (d_in + d_out)) ** 0.5)
