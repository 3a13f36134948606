"""Check `sinusoidal_encoding`: values first, since wrong waves keep all invariants."""

from __future__ import annotations

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.positional_encoding import CHAPTER
from autograder.exercises.positional_encoding.waves import (
    ACCEPTED_TABLES,
    BASE,
    interleaved,
    refuse_odd,
    table,
)
from autograder.program import Program, Run, call
from course_lib import positions

TOO_LONG = 2000
PAIR_SLACK = 1e-6


def another_base(draw: Draw) -> Program:
    """Draw a base other than the default."""
    return call(draw.integer(5, 9), 2 * draw.integer(3, 5), base=draw.number(20.0, 900.0))


def pairs_share_an_angle(program: Program, found: Run) -> str | None:
    """Look at sin² + cos² of each pair, which tells whether the two belong together."""
    encoding = found.outcomes[0]
    squares = encoding[:, 0::2] ** 2 + encoding[:, 1::2] ** 2
    wrong = np.argwhere(np.abs(squares - 1) > PAIR_SLACK)
    if not len(wrong):
        return None
    position, pair = (int(i) for i in wrong[0])
    return (
        f"sin² + cos² of columns {2 * pair} and {2 * pair + 1} is {squares[position, pair]:.4g} at position "
        f"{position}, not 1: the two columns of a pair do not have the same angle"
    )


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=positions.sinusoidal_encoding,
    returns=("the encoding",),
    properties=[pairs_share_an_angle],
    cases=[
        Case("7 positions, 6 columns", lambda draw: call(7, 6)),
        Case("another base", another_base),
        Case("drawn sizes", lambda draw: call(draw.integer(5, 12), 2 * draw.integer(4, 9)), hidden=True),
        Case("yet another base", another_base, hidden=True),
        Case("two columns", lambda draw: call(draw.integer(3, 6), 2), hidden=True),
        Case("one position", lambda draw: call(1, 2 * draw.integer(3, 6)), hidden=True),
        Case("2000 positions", lambda draw: call(TOO_LONG, 8), hidden=True),
        Case("an odd width", lambda draw: call(draw.integer(3, 6), 2 * draw.integer(2, 5) + 1), hidden=True),
    ],
)


@exercise.misconception("""
    Columns 0 and 1 are right, then your waves slow down too fast: your column 2 is the column 4 of the table. In the
    formula i counts pairs. A loop that steps 0, 2, 4 … already holds 2i: what is i for columns 2 and 3?
""")
def index_doubled(length, d_model, base=BASE):
    refuse_odd(d_model)
    return table(length, d_model, *[lambda i: base ** (-2 * i / d_model)] * 2)


@exercise.misconception("""
    Column 0 is right; then the waves slow down too fast, and sin² + cos² of columns 0 and 1 is not 1, so the pair does
    not share one frequency. Your loop variable already steps 0, 2, 4 …, and in the formula i counts pairs. What is i
    for columns 2 and 3, in both of their formulas?
""")
def index_doubled_and_cosine_apart(length, d_model, base=BASE):
    refuse_odd(d_model)
    return table(length, d_model, lambda i: base ** (-2 * i / d_model), lambda i: base ** (-2 * (i + 1) / d_model))


@exercise.misconception("""
    Your sines are right and your cosines are not: each column has a frequency of its own. Sine and cosine of one pair
    must share theirs, so that they are the two coordinates of one turning hand. Print sin² + cos² of columns 2 and 3.
""")
def frequency_per_column(length, d_model, base=BASE):
    refuse_odd(d_model)
    return table(length, d_model, lambda i: base ** (-i / d_model), lambda i: base ** (-(i + 1) / d_model))


@exercise.misconception("""
    Your waves slow down too slowly: your column 4 is the column 2 of the table. The exponent of pair i is 2i / d_model,
    and half of that came out. The last pair should nearly reach the base.
""")
def exponent_halved(length, d_model, base=BASE):
    refuse_odd(d_model)
    return table(length, d_model, *[lambda i: base ** (-i / (2 * d_model))] * 2)


@exercise.misconception("""
    Your frequencies fall by the same factor e² from pair to pair, whatever the width. Look at `a / d // 2`: Python
    works from left to right and rounds down at the end. Divide by the width, once.
""")
def floor_division_by_precedence(length, d_model, base=BASE):
    refuse_odd(d_model)
    rates = np.exp(np.arange(d_model // 2) * (-math.log(base) / d_model // 2))
    return interleaved(np.arange(length)[:, None] * rates)


@exercise.misconception("""
    All your columns turn equally fast: the exponent was cut off to a whole number, and 0 is what is left of any
    fraction below 1. `//` does that, and so does an array of integers.
""")
def exponent_cut_to_an_integer(length, d_model, base=BASE):
    refuse_odd(d_model)
    return table(length, d_model, *[lambda i: 1.0] * 2)


@exercise.misconception("""
    Your frequencies are upside down: the last pair should be the slowest, yours is the fastest. Dividing by a number
    that is already an inverse multiplies. Nothing but the values shows it: your rows have the right length, and their
    products depend on the distance alone.
""")
def frequencies_inverted(length, d_model, base=BASE):
    refuse_odd(d_model)
    return table(length, d_model, *[lambda i: base ** (i / d_model)] * 2)


@exercise.misconception("""
    An odd width fails somewhere inside your code. The contract says that it raises a `ValueError`: sine and cosine
    come in pairs. Say so before you compute anything.
""")
def odd_width_breaks(length, d_model, base=BASE):
    return table(length, d_model, *[lambda i: base ** (-i / d_model)] * 2)


@exercise.misconception("""
    An odd width gives a table in your code: the last column is a sine without its cosine. The contract says that it
    raises a `ValueError`, since half a pair cannot be turned and the shift by a matrix would break.
""")
def odd_width_accepted(length, d_model, base=BASE):
    columns = np.arange(d_model)
    angles = np.arange(length)[:, None] / base ** (2 * (columns // 2) / d_model)
    return np.where(columns % 2 == 0, np.sin(angles), np.cos(angles))


@exercise.misconception("""
    These are the same waves in another order of columns: all sines first, then all cosines. Several libraries store
    them so, and a model does not mind. This course follows the paper: sine in even, cosine in odd columns, so that a
    pair stands side by side.
""")
def sines_first_then_cosines(length, d_model, base=BASE):
    encoding = positions.sinusoidal_encoding(length, d_model, base)
    return np.concatenate([encoding[:, 0::2], encoding[:, 1::2]], axis=-1)


@exercise.misconception("""
    Your last pair reaches the base exactly, because you divide by one less than the number of pairs. Some early code
    does; the paper, and this course, divide 2i by d_model.
""")
def exponents_reach_one(length, d_model, base=BASE):
    refuse_odd(d_model)
    pairs = np.arange(d_model // 2) / max(1, d_model // 2 - 1)
    return interleaved(np.arange(length)[:, None] * base**-pairs)


@exercise.misconception("""
    Your first row is the encoding of position 1. Positions count from 0 here, so the first row is 0, 1, 0, 1, …
""")
def positions_from_one(length, d_model, base=BASE):
    return positions.sinusoidal_encoding(length + 1, d_model, base)[1:]


@exercise.misconception("""
    Cosine stands in the even columns and sine in the odd ones. It is the other way round here, so that the row of
    position 0 begins with 0.
""")
def sine_and_cosine_swapped(length, d_model, base=BASE):
    encoding = positions.sinusoidal_encoding(length, d_model, base)
    return encoding.reshape(length, -1, 2)[..., ::-1].reshape(length, d_model)


@exercise.misconception("""
    Your angles were converted between degrees and radians. The formula's angles are radians, as NumPy's sine wants
    them; nothing needs a conversion.
""")
def angles_in_degrees(length, d_model, base=BASE):
    refuse_odd(d_model)
    return table(length, d_model, *[lambda i: math.pi / 180 * base ** (-i / d_model)] * 2)


@exercise.misconception("""
    The base 10000 stands fixed in your code: another base changes nothing. Long-context models raise it, so it is an
    argument.
""")
def base_ignored(length, d_model, base=BASE):
    return positions.sinusoidal_encoding(length, d_model)


@exercise.misconception("""
    Your table lies on its side. Positions are rows: the shape is (length, d_model), so that it can be added to a text.
""")
def transposed(length, d_model, base=BASE):
    return positions.sinusoidal_encoding(length, d_model, base).T


@exercise.misconception("""
    Your table has an axis too many. Leave out the axis for the batch: broadcasting adds a (length, d_model) table to a
    whole batch anyway.
""")
def with_a_batch_axis(length, d_model, base=BASE):
    return positions.sinusoidal_encoding(length, d_model, base)[None]


@exercise.misconception("""
    Your table is float32. Compute it in float64, which is NumPy's default: at position 2000 the angles of float32 are
    already off in the fourth decimal, and casting the finished table costs nothing.
""")
def computed_in_float32(length, d_model, base=BASE):
    return positions.sinusoidal_encoding(length, d_model, base).astype(np.float32)


@exercise.misconception("""
    Every column of yours is a sine. One number per wavelength cannot tell a rising wave from a falling one; the cosine
    beside it can, and makes a shift a rotation.
""")
def sines_only(length, d_model, base=BASE):
    refuse_odd(d_model)
    angles = np.arange(length)[:, None] * base ** (-np.arange(0, d_model, 2) / d_model)
    return np.repeat(np.sin(angles), 2, axis=1)


for form in ACCEPTED_TABLES:
    exercise.alternative(form)


@exercise.alternative
def in_pytorch(length, d_model, base=BASE):
    import torch

    refuse_odd(d_model)
    rates = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), rates)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).numpy()
