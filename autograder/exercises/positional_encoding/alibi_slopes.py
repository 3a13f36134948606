"""Check `alibi_slopes`: the published rule, for every number of heads."""

from __future__ import annotations

import math

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.positional_encoding import CHAPTER
from autograder.program import Program, call
from course_lib import alibi

POWERS = (2, 4, 16, 32)
OTHERS = (5, 6, 7, 9, 10, 11, 12, 13, 14, 20, 24)


def a_power(draw: Draw) -> Program:
    """Draw a power of two other than 8."""
    return call(int(draw.random.choice(POWERS)))


def another_count(draw: Draw) -> Program:
    """Draw a count that needs filling up by two heads at least or by one."""
    return call(int(draw.random.choice(OTHERS)))


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=alibi.alibi_slopes,
    returns=("the slopes",),
    cases=[
        Case("8 heads", lambda draw: call(8)),
        Case("4 heads", lambda draw: call(4)),
        Case("6 heads", lambda draw: call(6)),
        Case("12 heads", lambda draw: call(12), hidden=True),
        Case("a power of two", a_power, hidden=True),
        Case("a count that is no power of two", another_count, hidden=True),
        Case("one head", lambda draw: call(1), hidden=True),
        Case("20 heads", lambda draw: call(20), hidden=True),
    ],
)


def _geometric(count: int, total: float = 8.0, start: int = 1) -> list[float]:
    return [2.0 ** (-total * place / count) for place in range(start, start + count)]


def _filled(num_heads: int, rule=_geometric) -> list[float]:
    """Follow the published filling-up with another rule for powers of two."""
    power = 2 ** int(math.log2(num_heads))
    return rule(power) + rule(2 * power)[0::2][: num_heads - power]


@exercise.misconception("""
    Powers of two are right, others are not: you use the same geometric series for every count. The authors' code does
    otherwise for 6 heads: it takes the 4 slopes of 4 heads, and fills up from the slopes of 8 heads.
""")
def one_series_for_every_count(num_heads):
    return torch.tensor(_geometric(num_heads))


@exercise.misconception("""
    Your first slope is 1. The exponents count from 1, not from 0: for 8 heads the slopes run from 1/2 to 1/256.
""")
def first_slope_is_one(num_heads):
    return torch.tensor(_filled(num_heads, lambda count: _geometric(count, start=0)))


@exercise.misconception("""
    Your slopes halve from head to head, whatever the number of heads. That is right for 8 only: for 4 heads each slope
    is a quarter of the one before, and the last is 1/256 in both cases.
""")
def always_halved(num_heads):
    return torch.tensor([2.0**-place for place in range(1, num_heads + 1)])


@exercise.misconception("""
    Your slopes fall evenly. They fall by a constant factor, so that some heads look near and some very far.
""")
def evenly_spaced(num_heads):
    return torch.tensor([1 - place / (num_heads + 1) for place in range(1, num_heads + 1)])


@exercise.misconception("""
    You fill up from the right list and take the wrong places: of the slopes of twice as many heads, the first, third,
    fifth … are missing among those you have; the others are there already. Do two of your heads have the same slope?
""")
def filled_with_slopes_it_has(num_heads):
    power = 2 ** int(math.log2(num_heads))
    return torch.tensor(_geometric(power) + _geometric(2 * power)[1::2][: num_heads - power])


@exercise.misconception("""
    You fill up with the first slopes of twice as many heads, one after the other. Take every second one, from the first
    on: those in between are among your slopes already.
""")
def filled_without_skipping(num_heads):
    power = 2 ** int(math.log2(num_heads))
    return torch.tensor(_geometric(power) + _geometric(2 * power)[: num_heads - power])


@exercise.misconception("""
    For a count that is no power of two you take the first slopes of the next power of two. Start from the power below:
    its slopes cover the whole range, and then fill up.
""")
def first_of_the_next_power(num_heads):
    power = 2 ** math.ceil(math.log2(num_heads))
    return torch.tensor(_geometric(power)[:num_heads])


@exercise.misconception("""
    The slopes are right, but you sorted them. The published order has the slopes of the power of two first and those
    that fill up after them; trained heads expect theirs.
""")
def sorted_at_the_end(num_heads):
    return torch.tensor(sorted(_filled(num_heads), reverse=True))


@exercise.misconception("""
    The slopes that fill up come first in your list. They come after those of the power of two.
""")
def filled_up_first(num_heads):
    power = 2 ** int(math.log2(num_heads))
    return torch.tensor(_geometric(2 * power)[0::2][: num_heads - power] + _geometric(power))


@exercise.misconception("""
    Your slopes are negative. A slope says how fast the score falls; the minus belongs into the bias.
""")
def negative(num_heads):
    return -alibi.alibi_slopes(num_heads)


@exercise.misconception("""
    Your slopes rise from head to head. The first head has the steepest slope, and so looks nearest.
""")
def rising(num_heads):
    return alibi.alibi_slopes(num_heads).flip(0)


@exercise.alternative
def as_repeated_products(num_heads):
    power = 1
    while power * 2 <= num_heads:
        power *= 2

    def series(count):
        ratio = 2 ** (-(2 ** -(math.log2(count) - 3)))
        return [ratio * ratio**place for place in range(count)]

    return torch.tensor(series(power) + series(2 * power)[0::2][: num_heads - power])


@exercise.alternative
def by_recursion(num_heads):
    if num_heads & (num_heads - 1) == 0:
        return torch.tensor([2 ** (-8 * (place + 1) / num_heads) for place in range(num_heads)])
    power = 1 << (num_heads.bit_length() - 1)
    return torch.cat([by_recursion(power), by_recursion(2 * power)[::2][: num_heads - power]])


@exercise.alternative
def with_tensors(num_heads):
    power = 2 ** math.floor(math.log2(num_heads))
    slopes = torch.pow(2.0, -8 / power * torch.arange(1, power + 1))
    extra = torch.pow(2.0, -4 / power * (2 * torch.arange(num_heads - power) + 1))
    return torch.cat([slopes, extra])
