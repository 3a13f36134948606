"""Check `additive_mask`: a mask as numbers to be added to scores."""

import math

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.masking import CHAPTER
from autograder.program import Program, Run, call
from course_lib import masks


def drawn(draw: Draw, dtype: torch.dtype, axes: int = 2) -> Program:
    """Draw a mask that hides some and shows some."""
    return call(draw.mask(*draw.sizes(axes, low=2, high=6)), dtype)


def one_row_hidden(draw: Draw) -> Program:
    """Draw a mask with a row that hides everything and one that hides nothing."""
    mask = draw.mask(5, 4)
    mask[1], mask[3] = True, False
    return call(mask, torch.float64)


def by_name(draw: Draw) -> Program:
    """Give both arguments by name."""
    return call(mask=draw.mask(3, 4), dtype=torch.float32)


def only_zeros_and_infinities(program: Program, found: Run) -> str | None:
    """Give a sentence when another number occurs."""
    numbers = found.outcomes[0].float()
    if numbers.isnan().any():
        return "your mask holds NaN: 0 times infinity has no value"
    strange = numbers[(numbers != 0) & (numbers != -math.inf)]
    if strange.numel() == 0:
        return None
    return f"your mask holds {strange.flatten()[0].item():.3g}, but what is added to a score is 0 or -inf"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=masks.additive_mask,
    returns=("the mask",),
    properties=[only_zeros_and_infinities],
    cases=[
        Case("float32", lambda draw: drawn(draw, torch.float32)),
        Case("float16", lambda draw: drawn(draw, torch.float16)),
        Case("float64, with a row that hides everything", one_row_hidden, hidden=True),
        Case("bfloat16, four axes", lambda draw: drawn(draw, torch.bfloat16, axes=4), hidden=True),
        Case("one axis", lambda draw: drawn(draw, torch.float32, axes=1), hidden=True),
        Case("arguments by name", by_name, hidden=True),
    ],
)


@exercise.misconception("""
    Your mask is NaN where it should be 0: False times infinity is 0 · ∞, which has no value. Choose between two
    numbers instead of multiplying.
""")
def multiplied_by_infinity(mask, dtype):
    return mask.to(dtype) * -math.inf


@exercise.misconception("""
    Your mask adds 1 to the score of a hidden key. That changes it a little, and in the wrong direction. What must be
    added to a score so that its share becomes exactly 0?
""")
def ones_added(mask, dtype):
    return mask.to(dtype)


@exercise.misconception("""
    Your numbers are the wrong way round: -inf stands at what should be seen. True hides here, and what is hidden gets
    -inf.
""")
def visible_at_minus_infinity(mask, dtype):
    return masks.additive_mask(~mask, dtype)


@exercise.misconception("""
    Hidden keys get +inf in your mask, so that they would take all of the attention. exp of which infinity is 0?
""")
def plus_infinity(mask, dtype):
    return -masks.additive_mask(mask, dtype)


@exercise.misconception("""
    A large negative number stands for -inf in your mask. It hides well as long as another key is visible; in a row
    that hides everything it cancels out, and every hidden key gets a share. In half precision it may not even exist.
    Use -inf itself.
""")
def large_number(mask, dtype):
    return torch.where(mask, -1e9, 0.0).to(dtype)


@exercise.misconception("""
    The most negative number of the dtype stands for -inf in your mask. Much code does this, so that a row that hides
    everything gives equal shares and no NaN. In this course such a row gets zeros, and the mask says -inf.
""")
def most_negative_number(mask, dtype):
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(mask, torch.finfo(dtype).min)


@exercise.misconception("""
    Your mask is float32, whatever `dtype` says. Added to scores in half precision it would widen them, and a fused
    kernel refuses a mask of another dtype.
""")
def always_single_precision(mask, dtype):
    return masks.additive_mask(mask, torch.float32)


@exercise.misconception("""
    You return a boolean mask. This exercise asks for numbers that can be added to scores: 0 for what is seen and -inf
    for what is hidden.
""")
def still_boolean(mask, dtype):
    return mask.clone()


@exercise.alternative
def chosen_by_where(mask, dtype):
    return torch.where(mask, -math.inf, 0.0).to(dtype)


@exercise.alternative
def logarithm_of_the_visible(mask, dtype):
    return (~mask).to(dtype).log()


@exercise.alternative
def filled_by_index(mask, dtype):
    numbers = torch.zeros_like(mask, dtype=dtype)
    numbers[mask] = float("-inf")
    return numbers


@exercise.alternative
def nested_lists(mask, dtype):
    return torch.tensor([-math.inf if hidden else 0.0 for hidden in mask.flatten().tolist()], dtype=dtype).view(
        mask.shape
    )


@exercise.alternative
def negative_zero(mask, dtype):
    return -torch.where(mask, math.inf, 0.0).to(dtype)
