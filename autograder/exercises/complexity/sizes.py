"""Sizes of which none is a multiple that hides another."""

from autograder.draw import Draw


def widths(draw: Draw) -> tuple[int, int]:
    """Draw d_model and a d_ff that is neither 3 nor 4 times as large."""
    d_model = draw.integer(30, 70)
    return d_model, 3 * d_model + draw.integer(1, 20)


def narrow(draw: Draw) -> tuple[int, int]:
    """Draw a d_ff below d_model, as inside one expert of many."""
    d_model = draw.integer(30, 70)
    return d_model, d_model - draw.integer(5, 20)


def lengths(draw: Draw) -> tuple[int, int]:
    """Draw two lengths of which one is more than twice the other, in either order."""
    short = draw.integer(5, 40)
    long = 2 * short + draw.integer(1, 30)
    return (short, long) if draw.integer(0, 1) else (long, short)
