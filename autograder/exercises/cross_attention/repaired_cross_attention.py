"""Check `repaired_cross_attention`: the bug hunt. The starter runs where both sides are alike, with three faults."""

import math

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises import library_calls
from autograder.exercises.cross_attention import CHAPTER
from autograder.program import Program, call
from course_lib import cross_attention


def drawn(draw: Draw, equal: bool = False, same_width: bool = True) -> Program:
    """Draw both sides and three matrices; `equal` makes the sides equally long."""
    batch, target, source = (int(size) for size in draw.random.permutation([2, 4, 6]))
    d_model, d_memory, d_k, d_v = (int(size) for size in draw.random.permutation([3, 5, 7, 9]))
    source, d_memory = (target if equal else source), (d_model if same_width else d_memory)
    widths = (d_model, d_k), (d_memory, d_k), (d_memory, d_v)
    matrices = [draw.normal(*width, scale=0.6) for width in widths]
    return call(draw.normal(batch, target, d_model), draw.normal(batch, source, d_memory), *matrices)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    name="repaired_cross_attention",
    reference=cross_attention.single_head_cross_attention,
    returns=("the output",),
    forbids=library_calls.ATTENTION,
    forbids_because="this exercise asks you to mend the code that is there",
    cases=[
        Case("both sides equally long", lambda draw: drawn(draw, equal=True)),
        Case("sides of different lengths", drawn),
        Case("other sizes", drawn, hidden=True),
        Case("a memory of another width", lambda draw: drawn(draw, same_width=False), hidden=True),
        Case("float64", drawn, hidden=True, dtype="float64"),
    ],
)


def _with_faults(x, memory, w_q, w_k, w_v, *, side=False, axis=False, scale=False):
    """Compute with the chosen faults of the starter left in."""
    query, key, value = x @ w_q, (x if side else memory) @ w_k, memory @ w_v
    width = value.shape[-1] if scale else query.shape[-1]
    weights = (query @ key.mT / math.sqrt(width)).softmax(dim=1 if axis else -1)
    return weights @ value


@exercise.misconception("""
    All three faults are still there. Replace the memory by random numbers and look at the weights, not at the output:
    do they change? Then add up a row of them.
""")
def as_it_was(x, memory, w_q, w_k, w_v):
    return _with_faults(x, memory, w_q, w_k, w_v, side=True, axis=True, scale=True)


@exercise.misconception("""
    Your scale is right now. Two faults are left: the weights do not change when the memory does, and a row of them
    does not sum to 1.
""")
def side_and_axis_left(x, memory, w_q, w_k, w_v):
    return _with_faults(x, memory, w_q, w_k, w_v, side=True, axis=True)


@exercise.misconception("""
    Your rows sum to 1 now. Two faults are left: what are the keys made from, and how many products does one score add
    up?
""")
def side_and_scale_left(x, memory, w_q, w_k, w_v):
    return _with_faults(x, memory, w_q, w_k, w_v, side=True, scale=True)


@exercise.misconception("""
    Your keys come from the right side now. Two faults are left: add up a row of the weights, and ask how many products
    one score adds up.
""")
def axis_and_scale_left(x, memory, w_q, w_k, w_v):
    return _with_faults(x, memory, w_q, w_k, w_v, axis=True, scale=True)


@exercise.misconception("""
    One fault is left: your keys still come from x. The weights compare the target with itself and are then used on the
    memory, which fits only where both are equally long.
""")
def side_left(x, memory, w_q, w_k, w_v):
    return _with_faults(x, memory, w_q, w_k, w_v, side=True)


@exercise.misconception("""
    One fault is left: in a batch, axis 1 runs over the queries, which compete for each source token. Count the axis
    from the end.
""")
def axis_left(x, memory, w_q, w_k, w_v):
    return _with_faults(x, memory, w_q, w_k, w_v, axis=True)


@exercise.misconception("""
    One fault is left: the scale. A score adds up one product for each feature that queries and keys share; the width of
    the values has no part in it.
""")
def scale_left(x, memory, w_q, w_k, w_v):
    return _with_faults(x, memory, w_q, w_k, w_v, scale=True)


@exercise.misconception("""
    Keys **and** values come from x now: that is self-attention, and the memory has no influence. Only one of the two
    was wrong.
""")
def everything_from_x(x, memory, w_q, w_k, w_v):
    return cross_attention.single_head_cross_attention(x, x, w_q, w_k, w_v)


@exercise.misconception("""
    The faults are mended, but the scale is gone: the scores are divided by nothing.
""")
def scale_lost(x, memory, w_q, w_k, w_v):
    return ((x @ w_q) @ (memory @ w_k).mT).softmax(-1) @ (memory @ w_v)


@exercise.misconception("""
    The scale comes from the width of x. A score adds up the d_k features that are left after the projection.
""")
def scale_from_the_model(x, memory, w_q, w_k, w_v):
    return ((x @ w_q) @ (memory @ w_k).mT / math.sqrt(x.shape[-1])).softmax(-1) @ (memory @ w_v)


@exercise.misconception("""
    The sides are exchanged now: the memory asks, and the output is as long as the source. In a decoder, the token that
    is written asks.
""")
def memory_asks(x, memory, w_q, w_k, w_v):
    return cross_attention.single_head_cross_attention(memory, x, w_q, w_k, w_v)


@exercise.alternative
def by_einsum(x, memory, w_q, w_k, w_v):
    query, key, value = x @ w_q, memory @ w_k, memory @ w_v
    scores = torch.einsum("...qd,...kd->...qk", query, key) * w_q.shape[1] ** -0.5
    return torch.einsum("...qk,...kv->...qv", scores.softmax(-1), value)


@exercise.alternative
def late_values(x, memory, w_q, w_k, w_v):
    weights = torch.softmax((x @ w_q) @ (memory @ w_k).transpose(-1, -2) / math.sqrt(w_k.shape[-1]), dim=-1)
    return (weights @ memory) @ w_v


@exercise.alternative
def merged_projections(x, memory, w_q, w_k, w_v):
    scores = x @ (w_q @ w_k.T) @ memory.mT
    return (scores / scores.new_tensor(w_k.shape[1]).sqrt()).softmax(-1) @ memory @ w_v


@exercise.alternative
def row_by_row(x, memory, w_q, w_k, w_v):
    return torch.stack(
        [
            ((tokens @ w_q) @ (source @ w_k).T / w_q.shape[-1] ** 0.5).softmax(-1) @ (source @ w_v)
            for tokens, source in zip(x, memory, strict=True)
        ]
    )
