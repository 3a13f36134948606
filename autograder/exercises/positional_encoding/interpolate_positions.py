"""Check `interpolate_positions`: long texts squeezed into the trained range, short ones left alone."""

from __future__ import annotations

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.positional_encoding import CHAPTER
from autograder.program import Program, call
from course_lib import positions


def longer(draw: Draw) -> Program:
    """Ask for a text that is longer than the trained ones, by no whole factor."""
    trained = draw.integer(6, 12)
    return call(trained + draw.integer(1, trained - 1), trained)


def shorter(draw: Draw) -> Program:
    """Ask for a text that fits with room to spare."""
    trained = draw.integer(6, 12)
    return call(trained - draw.integer(2, 4), trained)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=positions.interpolate_positions,
    returns=("the positions",),
    cases=[
        Case("twice as long", lambda draw: call(8, 4)),
        Case("a text that fits", lambda draw: call(5, 9)),
        Case("longer by no whole factor", longer, hidden=True),
        Case("shorter", shorter, hidden=True),
        Case("just as long", lambda draw: call(7, 7), hidden=True),
        Case("far longer", lambda draw: call(1000, 24), hidden=True),
        Case("one position", lambda draw: call(1, draw.integer(2, 5)), hidden=True),
    ],
)


def _whole(length):
    return torch.arange(length, dtype=torch.float32)


@exercise.misconception("""
    You stretch a text that is shorter than the trained ones. It fits as it is, and the model knows distances of 1:
    leave its positions alone.
""")
def short_texts_stretched(length, trained_length):
    return _whole(length) * (trained_length / length)


@exercise.misconception("""
    Your last position is the last trained one exactly: the ends are aligned. The method multiplies every position by
    trained / length, so that distances shrink by the factor by which the text is longer.
""")
def ends_aligned(length, trained_length):
    last = min(length, trained_length) - 1
    return _whole(length) * (last / max(1, length - 1))


@exercise.misconception("""
    Your positions leave the trained range: they are multiplied by length / trained. To squeeze, turn the fraction
    round.
""")
def factor_upside_down(length, trained_length):
    return _whole(length) * max(1.0, length / trained_length)


@exercise.misconception("""
    All tokens beyond the trained length share the last position, so that their order is lost. Squeeze all positions
    evenly instead.
""")
def clamped(length, trained_length):
    return _whole(length).clamp(max=trained_length - 1)


@exercise.misconception("""
    Positions start again at 0 after the trained length, so a far token looks near. Squeeze all positions evenly
    instead.
""")
def wrapped(length, trained_length):
    return _whole(length) % trained_length


@exercise.misconception("""
    Your positions are whole numbers, so that several tokens share one. They may be fractional: waves and rotations are
    defined between whole positions too, and that is the whole trick.
""")
def rounded_down(length, trained_length):
    return (_whole(length) * min(1.0, trained_length / length)).floor()


@exercise.misconception("""
    Your positions count from 1. Position 0 stays 0, however long the text is.
""")
def from_one(length, trained_length):
    return (_whole(length) + 1) * min(1.0, trained_length / length)


@exercise.misconception("""
    Nothing is squeezed: a long text gets the positions 0, 1, 2, …, of which the model knows only the first ones.
""")
def never_squeezed(length, trained_length):
    return _whole(length)


@exercise.misconception("""
    A text that fits gets whole numbers of an integer dtype, a long one floats. Return floats in both cases, so that
    whoever turns by them need not ask.
""")
def integers_when_it_fits(length, trained_length):
    places = torch.arange(length)
    return places if length <= trained_length else places * (trained_length / length)


@exercise.alternative
def as_a_division(length, trained_length):
    return torch.arange(length).float() / max(1.0, length / trained_length)


@exercise.alternative
def with_linspace(length, trained_length):
    scale = min(1.0, trained_length / length)
    return torch.linspace(0, (length - 1) * scale, length)


@exercise.alternative
def as_a_list(length, trained_length):
    if length <= trained_length:
        return torch.tensor([float(place) for place in range(length)])
    return torch.tensor([place * trained_length / length for place in range(length)])
