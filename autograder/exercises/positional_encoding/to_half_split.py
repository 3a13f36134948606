"""Check `to_half_split`: the permutation between the two layouts of rotary features."""

from __future__ import annotations

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.positional_encoding import CHAPTER
from autograder.program import Program, call
from course_lib import rotary


def counted(draw: Draw) -> Program:
    """Give the numbers 0 to 7, in which the order can be read."""
    return call(draw.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))


def features(draw: Draw, leading: int) -> Program:
    """Draw features with some leading axes, none of them as long as another."""
    sizes = draw.sizes(leading, low=2, high=5)
    return call(draw.normal(*sizes, 2 * draw.integer(3, 7)))


def square(draw: Draw) -> Program:
    """Give as many tokens as features."""
    return call(draw.normal(3, 6, 6))


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=rotary.to_half_split,
    returns=("the features",),
    cases=[
        Case("the numbers 0 to 7", counted),
        Case("tokens of one head", lambda draw: features(draw, 1)),
        Case("batch, heads and tokens", lambda draw: features(draw, 3), hidden=True),
        Case("as many tokens as features", square, hidden=True),
        Case("whole numbers", lambda draw: call(draw.integers(0, 99, 3, 10)), hidden=True),
        Case("float64", lambda draw: features(draw, 2), hidden=True, dtype="float64"),
        Case("two features", lambda draw: call(draw.normal(3, 2)), hidden=True),
    ],
)


@exercise.misconception("""
    You went the other way: yours takes half-split features back to neighbors. On 0 … 7 the result here begins with the
    even numbers, 0, 2, 4, 6. With four features the two directions agree, which may be how you tried it.
""")
def the_other_way(x):
    return torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


@exercise.misconception("""
    Odd columns come first in yours. The first member of each pair, the even column, goes into the first half.
""")
def odd_columns_first(x):
    return torch.cat([x[..., 1::2], x[..., 0::2]], dim=-1)


@exercise.misconception("""
    Nothing has moved: a reshape to pairs and back reads the same numbers in the same order. Between the two, the pair
    axis and the axis inside a pair must change places.
""")
def reshaped_and_back(x):
    return x.reshape(*x.shape[:-1], -1, 2).reshape(x.shape)


@exercise.misconception("""
    You swapped the two halves. The half-split layout does not keep neighbors together: columns 0 and 1 end up d/2
    apart.
""")
def halves_swapped(x):
    return torch.cat(x.chunk(2, dim=-1)[::-1], dim=-1)


@exercise.misconception("""
    You moved tokens instead of features: the order changes along another axis than the last. Use `x[..., 0::2]`; the
    three dots stand for all axes before the last.
""")
def along_the_first_axis(x):
    return torch.cat([x[0::2], x[1::2]], dim=0)


@exercise.misconception("""
    You return the two halves as a pair. Lay them side by side in one tensor of the old shape.
""")
def halves_as_a_pair(x):
    return x[..., 0::2], x[..., 1::2]


@exercise.misconception("""
    You return the order of the columns. Apply it: the result holds the numbers of `x`, in the new layout.
""")
def order_alone(x):
    return torch.cat([torch.arange(0, x.shape[-1], 2), torch.arange(1, x.shape[-1], 2)])


@exercise.misconception("""
    Your second half runs backward. Both halves keep the order of their pairs: even columns rising, then odd columns
    rising.
""")
def second_half_backward(x):
    return torch.cat([x[..., 0::2], x[..., 1::2].flip(-1)], dim=-1)


@exercise.misconception("""
    Your halves stand on an axis of their own. The result has the shape of `x`: flatten the last two axes.
""")
def not_flattened(x):
    return x.unflatten(-1, (-1, 2)).mT


@exercise.alternative
def by_transposing_pairs(x):
    return x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)


@exercise.alternative
def by_an_index(x):
    order = [*range(0, x.shape[-1], 2), *range(1, x.shape[-1], 2)]
    return x[..., order]


@exercise.alternative
def by_sorting_on_parity(x):
    return x.index_select(-1, torch.argsort(torch.arange(x.shape[-1]) % 2, stable=True))


@exercise.alternative
def by_a_permutation_matrix(x):
    width = x.shape[-1]
    matrix = torch.zeros(width, width, dtype=torch.float64)
    for column in range(width):
        matrix[column, column // 2 + (width // 2) * (column % 2)] = 1
    return (x.double() @ matrix).to(x.dtype)
