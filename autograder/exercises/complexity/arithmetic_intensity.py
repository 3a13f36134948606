"""Check `arithmetic_intensity`: FLOPs per byte moved."""

from fractions import Fraction

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.complexity import CHAPTER
from autograder.program import Program, call
from course_lib import roofline
from course_lib.roofline import product_work

FLOAT32_BYTES = 4


def product(rows: int, inner: int, columns: int) -> Program:
    """Give the work of one matrix product in float32."""
    work = product_work(rows, inner, columns)
    return call(work.flops, work.bytes_moved)


def drawn(draw: Draw, rows: int) -> Program:
    """Draw a product with this many rows on the left."""
    return product(rows, draw.integer(100, 300), draw.integer(301, 900))


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=roofline.arithmetic_intensity,
    returns=("the intensity",),
    cases=[
        Case("one token times a matrix", lambda draw: drawn(draw, 1)),
        Case("many tokens times a matrix", lambda draw: drawn(draw, 512)),
        Case("a large square product", lambda draw: product(1000, 1000, 1000), hidden=True),
        Case("a few tokens", lambda draw: drawn(draw, draw.integer(5, 9)), hidden=True),
        Case("a copy: nothing is calculated", lambda draw: call(0, draw.integer(100, 900)), hidden=True),
    ],
)


@exercise.misconception("""
    Your result is bytes per FLOP. Intensity is high when each byte that was fetched is used often.
""")
def turned_over(flops, bytes_moved):
    return bytes_moved / flops


@exercise.misconception("""
    You multiply. "FLOPs per byte" is a quotient, and grows when fewer bytes are moved.
""")
def multiplied(flops, bytes_moved):
    return flops * bytes_moved


@exercise.misconception("""
    Your result is rounded down: `//` gives 0 for every work that does less than one FLOP per byte, which is where the
    question is most interesting. Use `/`.
""")
def rounded_down(flops, bytes_moved):
    return flops // bytes_moved


@exercise.misconception("""
    Your result is FLOPs per **number** of float32. Bandwidths are in bytes, so the intensity is too.
""")
def per_number(flops, bytes_moved):
    return flops / (bytes_moved / FLOAT32_BYTES)


@exercise.misconception("""
    Your result is half of ours: you divide the FLOPs by 2 to get multiply-adds. The peak of a machine is given in
    FLOPs, so keep them.
""")
def multiply_adds(flops, bytes_moved):
    return flops / 2 / bytes_moved


@exercise.misconception("""
    Your result is a difference, and its value would change with the units. Asked for is how many FLOPs come on one
    byte.
""")
def difference(flops, bytes_moved):
    return flops - bytes_moved


@exercise.alternative
def by_numpy(flops, bytes_moved):
    return np.divide(flops, bytes_moved)


@exercise.alternative
def by_a_fraction(flops, bytes_moved):
    return float(Fraction(flops, bytes_moved))


@exercise.alternative
def by_the_inverse(flops, bytes_moved):
    return flops * (1 / bytes_moved)
