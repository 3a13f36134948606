"""Check `masked_mean`: average the tokens, and leave the padding out."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.masking import CHAPTER
from autograder.program import Program, call
from course_lib import padded_batches

LOUD = 50.0  # the size of what stands in the padding
BATCH, LENGTH = 3, 6


def tokens(draw: Draw, width: int = 4) -> torch.Tensor:
    """Draw tokens whose mean is far from 0."""
    return draw.normal(BATCH, LENGTH, width, mean=2.0)


def lengths(draw: Draw) -> torch.Tensor:
    """Draw three lengths that all differ: one between, a full one, and a single token."""
    return torch.tensor([draw.integer(2, 4), LENGTH, 1])


def padded(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a padded batch with loud padding."""
    mask = torch.arange(LENGTH) >= lengths(draw)[:, None]
    return tokens(draw).masked_fill(mask[..., None], LOUD), mask


def scattered(draw: Draw) -> Program:
    """Hide tokens anywhere."""
    mask = draw.mask(BATCH, LENGTH)
    return call(tokens(draw, 5), mask)


def empty_sequence(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Let one sequence of the batch hold nothing but padding."""
    x, mask = padded(draw)
    mask[draw.integer(0, 2)] = True
    return x, mask


def with_gradients(draw: Draw) -> Program:
    """Look at the mean and then at the gradients, with a sequence of nothing but padding."""
    x, mask = empty_sequence(draw)
    return call(x, mask).gradients(x, mask, wrt=(0,), weighted=True)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=padded_batches.masked_mean,
    returns=("the mean",),
    cases=[
        Case("three lengths", lambda draw: call(*padded(draw))),
        Case("a sequence of nothing but padding", lambda draw: call(*empty_sequence(draw))),
        Case("hidden tokens anywhere", scattered, hidden=True),
        Case("gradients", with_gradients, hidden=True),
        Case("float64", lambda draw: call(*padded(draw)), hidden=True, dtype="float64"),
        Case("half precision", lambda draw: call(*empty_sequence(draw)), hidden=True, dtype="float16"),
        Case("nothing hidden", lambda draw: call(tokens(draw), torch.zeros(BATCH, LENGTH).bool()), hidden=True),
    ],
)


def _sum(x, mask):
    return x.masked_fill(mask[..., None], 0).sum(1)


def _count(mask):
    return (~mask).sum(1, keepdim=True)


@exercise.misconception("""
    Padding takes part in your mean, and what stands there moves it: the mask has no effect. A mask in the attention
    does not help here, for the mean comes after it.
""")
def padding_averaged_too(x, mask):
    return x.mean(1)


@exercise.misconception("""
    You leave the padding out of the sum and count it all the same: a short sequence comes out too small, by the share
    of its real tokens. Divide by the number of tokens that you added.
""")
def divided_by_all(x, mask):
    return _sum(x, mask) / x.shape[1]


@exercise.misconception("""
    You average the padding and leave the tokens out. In this course True hides, so the real tokens are where the mask
    is False.
""")
def mean_of_the_padding(x, mask):
    return padded_batches.masked_mean(x, ~mask)


@exercise.misconception("""
    A sequence without a visible token becomes NaN: 0 / 0. One such row makes the loss of the whole batch NaN. In this
    course its mean is 0; what could you divide by instead?
""")
def nan_where_all_is_hidden(x, mask):
    return _sum(x, mask) / _count(mask).to(x.dtype)


@exercise.misconception("""
    The mean is right and its gradient is NaN: you divide 0 by 0 first and replace the result afterwards, and the way
    back passes through the division all the same. Mend the divisor, not the quotient.
""")
def nan_in_the_gradient(x, mask):
    visible = (~mask).unsqueeze(-1).to(x.dtype)
    return ((x * visible).sum(1) / visible.sum(1)).nan_to_num(0.0)


@exercise.misconception("""
    All your rows are divided by one and the same count. Every sequence has its own number of tokens. Over which axis
    must the visible ones be counted, and should that axis be kept?
""")
def one_count_for_all(x, mask):
    return _sum(x, mask) / (~mask).sum().clamp(min=1).to(x.dtype)


@exercise.misconception("""
    You average over the batch: token by token, all sequences together. A sequence's mean runs over its own tokens,
    axis 1.
""")
def averaged_over_the_batch(x, mask):
    return x.masked_fill(mask[..., None], 0).sum(0) / (~mask).sum(0)[:, None].clamp(min=1).to(x.dtype)


@exercise.misconception("""
    You take the sum and do not divide: a long sequence comes out large. A mean does not grow with the length.
""")
def sum_of_the_visible(x, mask):
    return _sum(x, mask)


@exercise.misconception("""
    You take the largest entry of each feature. Many classifiers do that too; this one asks for the mean.
""")
def maximum_of_the_visible(x, mask):
    largest = x.masked_fill(mask[..., None], -torch.inf).amax(1)
    return torch.where(largest.isinf(), 0, largest)


@exercise.misconception("""
    You add 1 to every count, or some other number, so that it is never 0. That makes every mean too small. Only a
    count of 0 needs help.
""")
def count_raised_by_one(x, mask):
    return _sum(x, mask) / (_count(mask) + 1).to(x.dtype)


@exercise.misconception("""
    A sequence with a single visible token comes out half as large: your count is never below 2. Its mean is the token
    itself. What is the smallest count that can be divided by?
""")
def count_of_at_least_two(x, mask):
    return _sum(x, mask) / _count(mask).clamp(min=2).to(x.dtype)


@exercise.alternative
def multiplied_by_the_visible(x, mask):
    visible = (~mask).unsqueeze(-1).to(x.dtype)
    return (x * visible).sum(dim=1) / visible.sum(dim=1).clamp(min=1)


@exercise.alternative
def sequence_by_sequence(x, mask):
    means = []
    for row, hidden in zip(x, mask, strict=True):
        visible = row[~hidden]
        means.append(visible.mean(0) if len(visible) else torch.zeros_like(row[0]))
    return torch.stack(means)


@exercise.alternative
def with_einsum(x, mask):
    visible = (~mask).to(x.dtype)
    weights = visible / visible.sum(1, keepdim=True).clamp(min=1)
    return torch.einsum("bn,bnd->bd", weights, x)


@exercise.alternative
def divided_by_at_least_a_little(x, mask):
    return _sum(x, mask) / _count(mask).to(x.dtype).clamp(min=1e-6)


@exercise.alternative
def with_nanmean(x, mask):
    mean = torch.where(mask[..., None], torch.nan, x.double()).nanmean(1)
    return torch.where(mask.all(1, keepdim=True), torch.zeros_like(mean), mean).to(x.dtype)
