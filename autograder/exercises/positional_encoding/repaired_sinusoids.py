"""Check `repaired_sinusoids`: a bug hunt. The loop is one that many tutorials print, and it has three faults."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.positional_encoding import CHAPTER
from autograder.exercises.positional_encoding.sinusoidal_encoding import another_base, pairs_share_an_angle
from autograder.exercises.positional_encoding.waves import ACCEPTED_TABLES, BASE, refuse_odd, table
from autograder.program import call
from course_lib import positions

Exponent = Callable[[int, int], float]

exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=positions.sinusoidal_encoding,
    name="repaired_sinusoids",
    returns=("the encoding",),
    properties=[pairs_share_an_angle],
    forbids=["course_lib.positions.sinusoidal_encoding"],
    forbids_because="this exercise asks you to repair the loop, not to replace it",
    cases=[
        Case("5 positions, 8 columns", lambda draw: call(5, 8)),
        Case("an odd width", lambda draw: call(4, 7)),
        Case("two columns", lambda draw: call(draw.integer(3, 6), 2)),
        Case("drawn sizes", lambda draw: call(draw.integer(5, 12), 2 * draw.integer(4, 9)), hidden=True),
        Case("another base", another_base, hidden=True),
        Case("another odd width", lambda draw: call(draw.integer(3, 6), _odd(draw)), hidden=True),
    ],
)


def _odd(draw: Draw) -> int:
    return 2 * draw.integer(4, 7) + 1


def _waves(length: int, d_model: int, base: float, sine: Exponent, cosine: Exponent) -> np.ndarray:
    """Fill the table with exponents that the two lines compute from the loop variable and the width."""
    return table(length, d_model, lambda i: base ** -sine(i, d_model), lambda i: base ** -cosine(i, d_model))


def _right(i: int, d_model: int) -> float:
    return i / d_model


def _doubled(i: int, d_model: int) -> float:
    return 2 * i / d_model


def _next_column(i: int, d_model: int) -> float:
    return (i + 1) / d_model


def _next_column_doubled(i: int, d_model: int) -> float:
    return 2 * (i + 1) / d_model


@exercise.misconception("""
    This is the loop as you found it: none of the three faults is mended yet. Print the row of position 1 for 8 columns
    beside that of your own `sinusoidal_encoding`, and then ask for 7 columns.
""")
def starter_unchanged(length, d_model, base=BASE):
    return _waves(length, d_model, base, _doubled, _next_column_doubled)


@exercise.misconception("""
    The odd width is mended; the waves are not. Columns 0 and 1 should have the same angle, and sin² + cos² of any pair
    should be 1. What does the loop variable hold for columns 2 and 3, and what is i in the formula?
""")
def only_odd_width_mended(length, d_model, base=BASE):
    refuse_odd(d_model)
    return starter_unchanged(length, d_model, base)


@exercise.misconception("""
    The doubled index is mended in both lines; two faults are left. Sine and cosine of a pair still have different
    angles, and an odd width still fails with an `IndexError`.
""")
def cosine_and_odd_width_left(length, d_model, base=BASE):
    return _waves(length, d_model, base, _right, _next_column)


@exercise.misconception("""
    Sine and cosine share their angle now; two faults are left. The waves slow down too fast, so that your column 2 is
    the column 4 of the table, and an odd width still fails with an `IndexError`.
""")
def index_and_odd_width_left(length, d_model, base=BASE):
    return _waves(length, d_model, base, _doubled, _doubled)


@exercise.misconception("""
    One fault is left: sine and cosine of a pair still have different angles. Which column number does the formula of
    the cosine use on its right-hand side?
""")
def cosine_left(length, d_model, base=BASE):
    refuse_odd(d_model)
    return cosine_and_odd_width_left(length, d_model, base)


@exercise.misconception("""
    One fault is left: the waves slow down too fast. The loop variable steps 0, 2, 4 …, so it already is the 2i of the
    formula.
""")
def index_left(length, d_model, base=BASE):
    refuse_odd(d_model)
    return index_and_odd_width_left(length, d_model, base)


@exercise.misconception("""
    One fault is left: all values are right, and an odd width fails with an `IndexError` from inside the loop. Say at
    the start what is wrong, with a `ValueError`.
""")
def odd_width_left(length, d_model, base=BASE):
    return _waves(length, d_model, base, _right, _right)


@exercise.misconception("""
    You mended the sine's line, but not the cosine's: both belong to the same pair, and need the same angle.
""")
def cosine_line_untouched(length, d_model, base=BASE):
    refuse_odd(d_model)
    return _waves(length, d_model, base, _right, _next_column_doubled)


@exercise.misconception("""
    You mended the cosine's line, but not the sine's: both belong to the same pair, and need the same angle.
""")
def sine_line_untouched(length, d_model, base=BASE):
    refuse_odd(d_model)
    return _waves(length, d_model, base, _doubled, _right)


@exercise.misconception("""
    The sine's line is mended. The cosine's line is not, and neither is the odd width, which fails with an `IndexError`.
""")
def cosine_line_and_odd_width_untouched(length, d_model, base=BASE):
    return _waves(length, d_model, base, _right, _next_column_doubled)


@exercise.misconception("""
    An odd width no longer fails: it gives a table whose last column is a sine without its cosine. The contract says
    that it raises a `ValueError`.
""")
def last_column_left_alone(length, d_model, base=BASE):
    encoding = np.zeros((length, d_model))
    for i in range(0, d_model, 2):
        angle = np.arange(length) / base ** (i / d_model)
        encoding[:, i] = np.sin(angle)
        if i + 1 < d_model:
            encoding[:, i + 1] = np.cos(angle)
    return encoding


@exercise.misconception("""
    Now the waves slow down too slowly: the index was halved once too often. The loop variable steps 0, 2, 4 …, and
    2i is just what it holds.
""")
def halved_too_often(length, d_model, base=BASE):
    refuse_odd(d_model)
    return _waves(length, d_model, base, *[lambda i, width: i / (2 * width)] * 2)


for form in ACCEPTED_TABLES:
    exercise.alternative(form)
