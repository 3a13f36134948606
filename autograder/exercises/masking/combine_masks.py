"""Check `combine_masks`: the future and the padding, hidden by one mask."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.masking import CHAPTER
from autograder.exercises.masking.properties import boolean
from autograder.program import Program, call
from course_lib import masks


def padding_mask(lengths: torch.Tensor, longest: int, left: bool = False) -> torch.Tensor:
    """Mark padding behind the given lengths, or before them."""
    mask = torch.arange(longest) >= lengths[:, None]
    return mask.flip(1) if left else mask


def padded(draw: Draw, left: bool = False) -> Program:
    """Draw a batch in which every sequence has another length; batch and length differ."""
    batch, longest = 3, draw.integer(5, 8)
    lengths = torch.tensor([longest, *draw.sizes(batch - 1, low=1, high=longest - 1)])
    return call(masks.causal_mask(longest), padding_mask(lengths, longest, left))


def as_many_sequences_as_tokens(draw: Draw) -> Program:
    """Draw a batch whose size equals its length, where a missing axis raises no error."""
    side = draw.integer(4, 6)
    return call(masks.causal_mask(side), padding_mask(draw.array(draw.random.permutation(side)) + 1, side))


def all_padding(draw: Draw) -> Program:
    """Let one sequence be nothing but padding."""
    return call(masks.causal_mask(4), padding_mask(torch.tensor([3, 0]), 4))


def not_causal(draw: Draw) -> Program:
    """Give any table in the place of the causal one."""
    side = draw.integer(4, 6)
    return call(draw.mask(side, side), draw.mask(3, side))


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=masks.combine_masks,
    returns=("the mask",),
    properties=[boolean],
    cases=[
        Case("three lengths", padded),
        Case("padding before the tokens", lambda draw: padded(draw, left=True)),
        Case("as many sequences as tokens", as_many_sequences_as_tokens),
        Case("a sequence of nothing but padding", all_padding, hidden=True),
        Case("any two masks", not_causal, hidden=True),
        Case("one sequence", lambda draw: call(masks.causal_mask(5), draw.mask(1, 5)), hidden=True),
    ],
)


@exercise.misconception("""
    Your mask hides a key only where both masks do. But it must not be seen if it lies in the future, and not either
    if it is padding: one reason is enough. Which of `&` and `|` says that?
""")
def both_reasons_needed(causal, padding):
    return causal & padding[:, None, None, :]


@exercise.misconception("""
    Your mask switches off queries that are padding; their rows are hidden, their columns are not, so real tokens still
    look at padding. The harm comes from keys. In (batch, head, query, key), which axis must the padding lie along?
""")
def queries_hidden(causal, padding):
    return causal | padding[:, None, :, None]


@exercise.misconception("""
    Your mask hides padding as a key, as it should, and as a query as well. What a padded query gathers is read by
    nobody, and hiding its whole row only makes rows that see nothing. Here padding hides keys alone.
""")
def queries_hidden_too(causal, padding):
    return causal | padding[:, None, None, :] | padding[:, None, :, None]


@exercise.misconception("""
    Where both masks hide a key, yours shows it: two reasons cancel. A key that is padding and lies in the future too
    should stay hidden. What is the difference between `^` and `|`?
""")
def either_but_not_both(causal, padding):
    return causal ^ padding[:, None, None, :]


@exercise.misconception("""
    Your mask has three axes, (batch, query, key). Give it an axis of size 1 for the heads, at place 1: then it
    broadcasts against scores (batch, head, query, key). Without it, the batch would be taken for heads.
""")
def no_axis_for_heads(causal, padding):
    return causal | padding[:, None, :]


@exercise.misconception("""
    The axis of size 1 stands before the batch in your mask. Scores are (batch, head, query, key): where must the axis
    be that all heads share?
""")
def axis_for_heads_first(causal, padding):
    return (causal | padding[:, None, :])[None]


@exercise.misconception("""
    You combine the two tables as they are. (b, n) against (n, n): this raises an error, or, if there happen to be as
    many sequences as tokens, it lays sequence b's padding over query b. Make room for the missing axes first.
""")
def axes_missing(causal, padding):
    return causal | padding


@exercise.misconception("""
    You turned the padding mask round before combining: real keys are hidden and padding is seen. Both masks come with
    True for what is hidden.
""")
def padding_inverted(causal, padding):
    return causal | ~padding[:, None, None, :]


@exercise.misconception("""
    You turned the causal mask round before combining: the past is hidden. Both masks come with True for what is
    hidden.
""")
def causal_inverted(causal, padding):
    return ~causal | padding[:, None, None, :]


@exercise.misconception("""
    Your mask is right about padding and shows the future: the causal table is not in it.
""")
def padding_alone(causal, padding):
    return (padding[:, None, None, :] | torch.zeros_like(causal)).clone()


@exercise.misconception("""
    You add the two masks, which gives the numbers 0, 1 and 2. The places are right, but a mask is boolean: combine
    with "or" instead of plus.
""")
def added(causal, padding):
    return causal.int() + padding[:, None, None, :].int()


@exercise.alternative
def with_logical_or(causal, padding):
    return torch.logical_or(causal[None, None], padding.unsqueeze(1).unsqueeze(1))


@exercise.alternative
def sequence_by_sequence(causal, padding):
    return torch.stack([(causal | row)[None] for row in padding])


@exercise.alternative
def visible_in_both(causal, padding):
    return ~(~causal & ~padding[:, None, None, :])


@exercise.alternative
def filled_in(causal, padding):
    batch, length = padding.shape
    mask = causal.expand(batch, 1, length, length).clone()
    for number, row in enumerate(padding):
        mask[number, 0, :, row] = True
    return mask


@exercise.alternative
def added_and_compared(causal, padding):
    return (causal.int() + padding[:, None, None, :].int()) > 0
