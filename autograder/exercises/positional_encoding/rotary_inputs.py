"""Tokens and positions for rotary positions: gaps, one new token, late positions, fractions."""

from __future__ import annotations

import torch

from autograder.draw import Draw
from autograder.program import Program, call

SHORT_REACH = 60  # where the angles of float32 are right to the tolerance
LONG_REACH = 2000  # where those of half precision are not


def gaps(draw: Draw, length: int, reach: int = SHORT_REACH) -> torch.Tensor:
    """Draw different positions above 0, in no order and with gaps."""
    return draw.array(1 + draw.random.choice(reach, length, replace=False))


def shape(draw: Draw) -> tuple[int, int, int, int]:
    """Draw batch, heads, tokens and an even width of at least 6, all different."""
    batch, heads, tokens = draw.sizes(3, low=2, high=5)
    return batch, heads, tokens, 2 * draw.integer(3, 5)


def one_head(draw: Draw) -> Program:
    """Turn tokens at the positions 0, 1, 2, 3 and 7."""
    return call(draw.normal(5, 6), draw.array([0, 1, 2, 3, 7]))


def heads(draw: Draw, **options: float) -> Program:
    """Turn the tokens of several heads and texts."""
    sizes = shape(draw)
    return call(draw.normal(*sizes), gaps(draw, sizes[2]), **options)


def many_heads(draw: Draw) -> Program:
    """Give as many heads as tokens, so that one axis can pass for the other."""
    return call(draw.normal(2, 5, 5, 8), gaps(draw, 5))


def one_new_token(draw: Draw) -> Program:
    """Turn a single token in the middle of a text, as a decoder with a cache does."""
    return call(draw.normal(2, 3, 1, 8), draw.array([draw.integer(5, SHORT_REACH)]))


def position_twice(draw: Draw) -> Program:
    """Give one position twice."""
    positions = gaps(draw, 6)
    positions[0] = positions[3]
    return call(draw.normal(3, 6, 10), positions)


def fractional(draw: Draw) -> Program:
    """Give positions between whole numbers, as position interpolation does."""
    return call(draw.normal(6, 8), draw.array(draw.random.uniform(1, 20, 6)))


def half_precision(draw: Draw) -> Program:
    """Turn tokens of bfloat16 at late positions, whose angles bfloat16 cannot hold."""
    late = draw.array(LONG_REACH - draw.random.choice(900, 6, replace=False))
    return call(draw.normal(2, 6, 8), late)
