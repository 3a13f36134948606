"""Check `split_heads`: cut the features of every token into heads."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.multi_head_attention import CHAPTER
from autograder.exercises.multi_head_attention.sizes import sizes
from autograder.program import Program, call
from course_lib import multi_head


def drawn(draw: Draw) -> Program:
    """Draw a batch of sequences; batch, heads, sequence and head width all differ."""
    size = sizes(draw)
    return call(draw.normal(size.batch, size.query, size.d_model), size.heads)


def numbered(draw: Draw) -> Program:
    """Write into every feature which token and feature it is: token 2, feature 13 holds 213."""
    x = torch.arange(0, 500, 100)[:, None] + torch.arange(15)
    return call(draw.array(x.numpy().astype(float))[None], 3)


def indivisible(draw: Draw) -> Program:
    """Ask for heads that do not divide the width; one feature would be left over."""
    size = sizes(draw)
    return call(draw.normal(size.batch, size.query, size.d_model + 1), size.heads)


def as_many_heads_as_features(draw: Draw) -> Program:
    """Give each head a single feature."""
    size = sizes(draw)
    return call(draw.normal(size.batch, size.query, size.d_head), size.d_head)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=multi_head.split_heads,
    returns=("the result",),
    cases=[
        Case("5 tokens of 15 numbered features, 3 heads", numbered),
        Case("all sizes differ", drawn),
        Case("a width that the heads do not divide", indivisible, hidden=True),
        Case("one feature for each head", as_many_heads_as_features, hidden=True),
        Case("float64", drawn, hidden=True, dtype="float64"),
    ],
)


def _d_head(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("the width does not divide")
    return x.shape[-1] // num_heads


@exercise.misconception("""
    The shape is right, but head 0 of yours holds whole tokens: the first rows of x, cut into pieces, where it
    should hold the first features of every token. `view` and `reshape` never move a number, they only cut the
    same line of numbers at other places. Which axis is cut into heads, and which axis must move afterwards?
""")
def view_without_transpose(x, num_heads):
    return x.reshape(x.shape[0], num_heads, x.shape[1], _d_head(x, num_heads))


@exercise.misconception("""
    Your heads deal the features out like cards: head 0 has features 0, 3, 6, … Each head should own
    neighbors: head 0 the first d_head features, head 1 the next. When you cut the last axis in two, which of
    the two new axes runs faster?
""")
def features_dealt_out(x, num_heads):
    return x.reshape(*x.shape[:2], _d_head(x, num_heads), num_heads).permute(0, 3, 1, 2)


@exercise.misconception("""
    The features are cut into heads correctly, but the head axis still stands behind the sequence: (batch,
    sequence, heads, d_head). The matrix products of attention work on the last two axes, so each head needs a
    (sequence, d_head) table of its own there.
""")
def heads_behind_the_sequence(x, num_heads):
    return x.reshape(*x.shape[:2], num_heads, _d_head(x, num_heads))


@exercise.misconception("""
    The last two axes are the wrong way round: (batch, heads, d_head, sequence). Tokens are rows here; the
    transpose of the keys happens later, inside the scores.
""")
def features_before_the_sequence(x, num_heads):
    _d_head(x, num_heads)
    return multi_head.split_heads(x, num_heads).transpose(-1, -2)


@exercise.misconception("""
    You cut the sequence into pieces: each of your heads sees some of the tokens at full width. A head sees
    every token, but only some of its features.
""")
def sequence_cut(x, num_heads):
    _d_head(x, num_heads)
    return torch.stack(x.tensor_split(num_heads, dim=1), 1)


@exercise.misconception("""
    Batch and heads share one axis in your result: (batch · heads, sequence, d_head). That is a sound way to
    feed a batched product, and some libraries do it, but here the two stay apart: (batch, heads, sequence,
    d_head).
""")
def heads_folded_into_the_batch(x, num_heads):
    return multi_head.split_heads(x, num_heads).flatten(0, 1)


@exercise.misconception("""
    When the heads do not divide the width, `//` rounds down and the last features are lost without a word.
    Raise a `ValueError` instead: a model that drops features still trains, so nobody would notice.
""")
def features_left_over_are_dropped(x, num_heads):
    d_head = x.shape[-1] // num_heads
    return multi_head.split_heads(x[..., : num_heads * d_head], num_heads)


@exercise.misconception("""
    The values are right, and you refuse a width that the heads do not divide, but not with a `ValueError`.
    Test it yourself, before the reshape, and raise `ValueError` with a sentence that names both numbers:
    whoever calls your function should not have to know how it is made.
""")
def refused_by_assert(x, num_heads):
    assert x.shape[-1] % num_heads == 0
    return multi_head.split_heads(x, num_heads)


@exercise.alternative
def view_then_permute(x, num_heads):
    batch, sequence, _ = x.shape
    return x.view(batch, sequence, num_heads, _d_head(x, num_heads)).permute(0, 2, 1, 3)


@exercise.alternative
def stacked_slices(x, num_heads):
    d_head = _d_head(x, num_heads)
    return torch.stack([x[..., i * d_head : (i + 1) * d_head] for i in range(num_heads)], dim=1)


@exercise.alternative
def stacked_chunks(x, num_heads):
    _d_head(x, num_heads)
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


@exercise.alternative
def by_einsum(x, num_heads):
    return torch.einsum("bnhd->bhnd", x.reshape(*x.shape[:2], num_heads, _d_head(x, num_heads)))


@exercise.alternative
def contiguous_copy(x, num_heads):
    return multi_head.split_heads(x, num_heads).contiguous()
