"""Check `strided_mask`: the last tokens, and every stride-th before them."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.exercises.efficient_attention.rows import boolean, first_wrong_row
from autograder.program import Program, Run, call
from course_lib.efficient import sparse


def drawn(draw: Draw) -> Program:
    """Ask for a length that the stride does not divide."""
    stride = draw.integer(3, 5)
    return call(3 * stride + draw.integer(1, stride - 1), stride)


def long(draw: Draw) -> Program:
    """Ask for a length with many strides, which the stride divides."""
    stride = draw.integer(3, 4)
    return call(6 * stride, stride)


def of_the_stride(program: Program, found: Run) -> str | None:
    """Give a sentence about the first query that sees the wrong keys."""
    length, stride = program.steps[0].args
    sentence = first_wrong_row(
        found.outcomes[0], length, lambda i, j: j <= i and (i - j < stride or (i - j) % stride == 0)
    )
    return sentence and f"with stride {stride} {sentence}"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=sparse.strided_mask,
    returns=("the mask",),
    properties=[boolean, of_the_stride],
    cases=[
        Case("a few strides", drawn),
        Case("many strides", long, hidden=True),
        Case("a stride of one", lambda draw: call(draw.integer(4, 6), 1), hidden=True),
        Case("a stride of two", lambda draw: call(draw.integer(8, 10), 2), hidden=True),
        Case("a stride beyond the sequence", lambda draw: call(5, draw.integer(6, 9)), hidden=True),
        Case("one token", lambda draw: call(1, 3), hidden=True),
    ],
)


def _distance(length):
    places = torch.arange(length)
    return places[:, None] - places[None, :]


@exercise.misconception("""
    The local part is missing: each token sees itself and every stride-th token before it, and none of those between.
    The pattern is a union of two sets of keys.
""")
def no_local_part(length, stride):
    distance = _distance(length)
    return (distance < 0) | (distance % stride != 0)


@exercise.misconception("""
    Your mask is a plain sliding window: nothing beyond the last `stride` tokens is visible. Where are those at the
    distances stride, 2 · stride, 3 · stride …?
""")
def no_strided_part(length, stride):
    return sparse.sliding_window_mask(length, stride)


@exercise.misconception("""
    You demand that a key is near **and** a multiple of the stride away, which leaves a token with itself alone. The
    pattern is a union: one of the two reasons is enough to be seen.
""")
def intersection(length, stride):
    distance = _distance(length)
    return (distance < 0) | (distance >= stride) | (distance % stride != 0)


@exercise.misconception("""
    Your far keys stand in fixed columns: those whose own number is a multiple of the stride. That is close to the other
    pattern of the same paper, "fixed". In the strided one the **distance** i - j is a multiple, so the columns
    move along with the query.
""")
def fixed_columns(length, stride):
    distance = _distance(length)
    columns = torch.arange(length) % stride == 0
    return (distance < 0) | ((distance >= stride) & ~columns)


@exercise.misconception("""
    Your tokens see the future too: the same pattern runs ahead as well as back. This one is causal.
""")
def future_visible(length, stride):
    distance = _distance(length).abs()
    return (distance >= stride) & (distance % stride != 0)


@exercise.misconception("""
    Your mask is True where a token may look. In this course True hides.
""")
def inverted(length, stride):
    return ~sparse.strided_mask(length, stride)


@exercise.misconception("""
    A token does not see itself. Its distance from itself is 0, which is below the stride, and a multiple of it too.
""")
def without_itself(length, stride):
    return sparse.strided_mask(length, stride) | torch.eye(length, dtype=torch.bool)


@exercise.misconception("""
    Your far keys are the last ones of each block of `stride`, wherever the query stands. That is the "fixed" pattern of
    the same paper. Here the distance i - j has to be a multiple of the stride.
""")
def fixed_summaries(length, stride):
    distance = _distance(length)
    columns = torch.arange(length) % stride == stride - 1
    return (distance < 0) | ((distance >= stride) & ~columns)


@exercise.misconception("""
    Rows and columns are exchanged: your tokens look ahead. Rows are queries, columns are keys.
""")
def looks_ahead(length, stride):
    return sparse.strided_mask(length, stride).T


@exercise.misconception("""
    Your mask holds numbers. The places are right; make it boolean, True where a key is hidden.
""")
def zeros_and_ones(length, stride):
    return sparse.strided_mask(length, stride).int()


@exercise.alternative
def window_up_to_the_stride(length, stride):
    distance = _distance(length)
    visible = (distance >= 0) & ((distance <= stride) | (distance % stride == 0))
    return ~visible


@exercise.alternative
def cell_by_cell(length, stride):
    cells = [[not (j <= i and (i - j < stride or (i - j) % stride == 0)) for j in range(length)] for i in range(length)]
    return torch.tensor(cells)


@exercise.alternative
def two_heads_joined(length, stride):
    distance = _distance(length)
    near, far = distance < stride, torch.remainder(distance, stride) == 0
    return ~torch.tril(near | far)


@exercise.alternative
def row_by_row(length, stride):
    mask = torch.ones(length, length, dtype=torch.bool)
    for i in range(length):
        mask[i, i % stride : i + 1 : stride] = False
        mask[i, max(0, i + 1 - stride) : i + 1] = False
    return mask
