"""Check `residual_init_std`: smaller last matrices for deeper stacks."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.training_in_practice import CHAPTER
from autograder.program import Program, call
from course_lib.training import initialization


def drawn(draw: Draw) -> Program:
    """Draw depth and base."""
    return call(draw.integer(5, 60), draw.number(0.03, 0.9))


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=initialization.residual_init_std,
    returns=("the spread",),
    tolerance=1e-6,
    cases=[
        Case("a stack with the usual base", lambda draw: call(draw.integer(5, 60))),
        Case("another base", drawn),
        Case("one layer", lambda draw: call(1, draw.number(0.03, 0.9)), hidden=True),
        Case("a base by name", lambda draw: call(draw.integer(60, 99), base=draw.number(0.1, 0.9)), hidden=True),
    ],
)


@exercise.misconception("""
    You divide by √layers. Each layer adds to the stream **twice**, once after attention and once after the
    feed-forward network. How many additions do n layers make?
""")
def one_addition_per_layer(num_layers, base=0.02):
    return base / math.sqrt(num_layers)


@exercise.misconception("""
    You divide by the number of additions itself. It is the variances that add up, and your spread is a standard
    deviation: √ belongs around the number.
""")
def no_root(num_layers, base=0.02):
    return base / (2 * num_layers)


@exercise.misconception("""
    Your spread grows with depth. The more terms are added, the smaller each has to be.
""")
def grows_with_depth(num_layers, base=0.02):
    return base * math.sqrt(2 * num_layers)


@exercise.misconception("""
    Your spread does not depend on the depth. Then n additions make the stream √n times as large as one.
""")
def depth_ignored(num_layers, base=0.02):
    return base


@exercise.misconception("""
    The 2 stands outside your root: base / (2 √layers) is too small by √2. There are 2 · layers additions, all under
    the root.
""")
def two_outside_the_root(num_layers, base=0.02):
    return base / (2 * math.sqrt(num_layers))


@exercise.misconception("""
    Your result is a variance: the base is squared. Asked for is the standard deviation.
""")
def variance(num_layers, base=0.02):
    return base**2 / (2 * num_layers)


@exercise.misconception("""
    You always use 0.02. The base is an argument; 0.02 is only what it is if nobody says otherwise.
""")
def base_ignored(num_layers, base=0.02):
    return 0.02 / math.sqrt(2 * num_layers)


@exercise.alternative
def by_a_power(num_layers, base=0.02):
    return base * (2 * num_layers) ** -0.5


@exercise.alternative
def by_variance(num_layers, base=0.02):
    return np.sqrt(base**2 / (num_layers + num_layers))
