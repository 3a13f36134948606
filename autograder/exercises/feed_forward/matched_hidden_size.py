"""Check `matched_hidden_size`: how wide a gated network is that has as many weights as a plain one."""

import math

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.feed_forward import CHAPTER
from autograder.program import Program, call
from course_lib import feed_forward

WIDEST = 40  # d_ff in units of d_model, at most: T5's largest has 64


def sizes(draw: Draw, rest: int) -> tuple[int, int]:
    """Draw a width and a d_ff that leaves `rest` when it is divided by 3; it is no multiple of 4 d_model."""
    d_model = draw.integer(30, 70)
    d_ff = 3 * draw.integer(2 * d_model, WIDEST * d_model // 3) + rest
    return d_model, d_ff + 3 * (d_ff % (4 * d_model) == 0)


def multiple(draw: Draw, rest: int) -> Program:
    """Ask for a multiple that two thirds of d_ff is just above, so that rounding down and to the nearest fail."""
    step = 3 * draw.integer(10, 30)
    d_model, _ = sizes(draw, rest)
    d_ff = 3 * step * draw.integer(5, 9) + rest  # two thirds of it is an even multiple of step, and rest · 2/3
    return call(d_model, d_ff, step)


def already_a_multiple(draw: Draw) -> Program:
    """Let two thirds of d_ff be a multiple already."""
    step = draw.integer(10, 30)
    d_ff = 3 * step * draw.integer(5, 9)
    return call(draw.integer(30, 70), d_ff, step)


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=feed_forward.matched_hidden_size,
    returns=("the size",),
    cases=[
        Case("T5 base", lambda draw: call(768, 3072)),
        Case("two thirds is no whole number", lambda draw: call(*sizes(draw, 2))),
        Case("LLaMA 7B, multiples of 256", lambda draw: call(4096, 16384, 256)),
        Case("two thirds is no whole number, again", lambda draw: call(*sizes(draw, 1)), hidden=True),
        Case("just above a multiple", lambda draw: multiple(draw, 2), hidden=True),
        Case("a fraction above a multiple", lambda draw: multiple(draw, 1), hidden=True),
        Case("a multiple already", already_a_multiple, hidden=True),
    ],
)


def _up(number, step):
    return -(-number // step) * step


@exercise.misconception("""
    You round down, so the gated network has fewer weights than the plain one. The contract rounds up.
""")
def rounded_down(d_model, d_ff, multiple_of=1):
    return 2 * d_ff // 3 // multiple_of * multiple_of


@exercise.misconception("""
    You round to the nearest number. The contract rounds up: the gated network has at least as many weights.
""")
def rounded_to_nearest(d_model, d_ff, multiple_of=1):
    return round(2 * d_ff / 3 / multiple_of) * multiple_of


@exercise.misconception("""
    Two thirds are rounded up correctly, but to the multiple you round down or to the nearest. Round up there too.
""")
def multiple_rounded_down(d_model, d_ff, multiple_of=1):
    return math.ceil(2 * d_ff / 3) // multiple_of * multiple_of


@exercise.misconception("""
    You round two thirds down and then up to the multiple, as LLaMA's published code does. Where two thirds lies a
    fraction above a multiple, that is one multiple too few: round up from the exact number.
""")
def down_then_up(d_model, d_ff, multiple_of=1):
    return _up(2 * d_ff // 3, multiple_of) if multiple_of > 1 else _up(2 * d_ff, 3) // 3


@exercise.misconception("""
    `multiple_of` has no influence. Hardware likes widths such as multiples of 256; round up to one.
""")
def multiple_ignored(d_model, d_ff, multiple_of=1):
    return math.ceil(2 * d_ff / 3)


@exercise.misconception("""
    A size that is a multiple already is pushed to the next one: `// multiple_of + 1` always adds. How do you round up
    only where something is left over?
""")
def always_the_next_multiple(d_model, d_ff, multiple_of=1):
    return math.ceil(2 * d_ff / 3) if multiple_of == 1 else (2 * d_ff // 3 // multiple_of + 1) * multiple_of


@exercise.misconception("""
    You return d_ff itself. A gated network has three matrices where the plain one has two, so at the same width it
    has half as many weights again.
""")
def same_width(d_model, d_ff, multiple_of=1):
    return _up(d_ff, multiple_of)


@exercise.misconception("""
    You halve d_ff: two of the three matrices are taken for one. Count: gate, up and down, each d_model · h.
""")
def half_the_width(d_model, d_ff, multiple_of=1):
    return _up(_up(d_ff, 2) // 2, multiple_of)


@exercise.misconception("""
    Your size is larger than d_ff: you multiply by 3/2. More matrices for the same weights must be smaller.
""")
def three_halves(d_model, d_ff, multiple_of=1):
    return _up(math.ceil(3 * d_ff / 2), multiple_of)


@exercise.misconception("""
    Your size is 8/3 of d_model and does not depend on d_ff. That is right for d_ff = 4 d_model, the usual case; take
    two thirds of the d_ff that you are given.
""")
def eight_thirds_of_d_model(d_model, d_ff, multiple_of=1):
    return _up(math.ceil(8 * d_model / 3), multiple_of)


@exercise.misconception("""
    You match the biases too. That is another fair convention, but here only the matrices are counted: the gated
    network has no biases. Then d_model cancels.
""")
def biases_counted(d_model, d_ff, multiple_of=1):
    return _up(math.ceil((2 * d_model * d_ff + d_ff + d_model) / (3 * d_model)), multiple_of)


@exercise.misconception("""
    Your result is a float. A number of hidden units is whole: `math.ceil` gives an int, and so does `//`.
""")
def left_as_a_float(d_model, d_ff, multiple_of=1):
    return 2 * d_ff / 3 if multiple_of == 1 else float(_up(math.ceil(2 * d_ff / 3), multiple_of))


@exercise.alternative
def by_ceil(d_model, d_ff, multiple_of=1):
    return math.ceil(math.ceil(2 * d_ff / 3) / multiple_of) * multiple_of


@exercise.alternative
def by_negative_division(d_model, d_ff, multiple_of=1):
    return -(-2 * d_ff // (3 * multiple_of)) * multiple_of


@exercise.alternative
def by_search(d_model, d_ff, multiple_of=1):
    size = multiple_of
    while 3 * d_model * size < 2 * d_model * d_ff:
        size += multiple_of
    return size


@exercise.alternative
def by_remainder(d_model, d_ff, multiple_of=1):
    size = (2 * d_ff + 2) // 3
    return size if size % multiple_of == 0 else size + multiple_of - size % multiple_of
