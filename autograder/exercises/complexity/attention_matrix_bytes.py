"""Check `attention_matrix_bytes`: one copy of a layer's attention weights."""

import numpy as np
import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.complexity import CHAPTER
from autograder.program import Program, call
from course_lib import costs

USUAL_HEAD = 64  # features


def drawn(draw: Draw, itemsize: int | None) -> Program:
    """Draw batch, heads and sequence, all different."""
    batch, heads = draw.sizes(2, low=3, high=16)
    sizes = (batch, heads, draw.integer(20, 90))
    return call(*sizes) if itemsize is None else call(*sizes, itemsize)


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=costs.attention_matrix_bytes,
    returns=("the number of bytes",),
    cases=[
        Case("GPT-2 small on 1024 tokens", lambda draw: call(1, 12, 1024)),
        Case("float32, all sizes differ", lambda draw: drawn(draw, None)),
        Case("half precision", lambda draw: drawn(draw, 2)),
        Case("double precision", lambda draw: drawn(draw, 8), hidden=True),
        Case("float32 again", lambda draw: drawn(draw, None), hidden=True),
        Case("8-bit numbers", lambda draw: drawn(draw, 1), hidden=True),
    ],
)


@exercise.misconception("""
    Your bytes do not depend on the number of heads. Each head has a map of its own, so 12 heads hold 12 of them.
""")
def one_map_for_all_heads(batch, heads, sequence, itemsize=4):
    return batch * sequence**2 * itemsize


@exercise.misconception("""
    Your bytes do not depend on the batch. Each sequence has maps of its own.
""")
def batch_forgotten(batch, heads, sequence, itemsize=4):
    return heads * sequence**2 * itemsize


@exercise.misconception("""
    Your bytes hold a width, as in the documents' O(n² d) for space. A map holds one number for a pair of tokens,
    however wide the vectors were from which it came. Where would you store d numbers per pair?
""")
def times_the_head_width(batch, heads, sequence, itemsize=4):
    return batch * heads * sequence**2 * USUAL_HEAD * itemsize


@exercise.misconception("""
    Your bytes grow in proportion to the sequence. A map has a row for every query **and** a column for every key.
""")
def linear_in_the_sequence(batch, heads, sequence, itemsize=4):
    return batch * heads * sequence * itemsize


@exercise.misconception("""
    Your result is the number of entries. Each takes `itemsize` bytes.
""")
def entries_not_bytes(batch, heads, sequence, itemsize=4):
    return batch * heads * sequence**2


@exercise.misconception("""
    `itemsize` has no influence: 4 bytes are built in. Half precision needs half of it.
""")
def four_bytes_built_in(batch, heads, sequence, itemsize=4):
    return batch * heads * sequence**2 * 4


@exercise.misconception("""
    Your result is 8 times too large: it counts bits. `itemsize` is in bytes already.
""")
def bits(batch, heads, sequence, itemsize=4):
    return batch * heads * sequence**2 * itemsize * 8


@exercise.misconception("""
    Your result is twice ours: you count scores and weights. A plain implementation does hold both for a while (and
    with dropout a third); the contract asks for one copy, so that you can multiply by as many as you find.
""")
def two_copies(batch, heads, sequence, itemsize=4):
    return 2 * batch * heads * sequence**2 * itemsize


@exercise.misconception("""
    You count the visible half of a causal map. A mask hides numbers, it does not save their memory: the tensor is a
    full square.
""")
def causal_half(batch, heads, sequence, itemsize=4):
    return batch * heads * sequence * (sequence + 1) // 2 * itemsize


@exercise.misconception("""
    Your result is in mebibytes. The contract asks for bytes, a whole number; `bytes_text` of `course_lib.memory`
    writes it with a unit.
""")
def mebibytes(batch, heads, sequence, itemsize=4):
    return batch * heads * sequence**2 * itemsize / 2**20


@exercise.alternative
def measured_on_a_tensor(batch, heads, sequence, itemsize=4):
    dtype = {1: torch.int8, 2: torch.float16, 4: torch.float32, 8: torch.float64}[itemsize]
    return torch.empty(batch, heads, sequence, sequence, dtype=dtype, device="meta").nbytes


@exercise.alternative
def product_of_the_shape(batch, heads, sequence, itemsize=4):
    return np.prod([batch, heads, sequence, sequence]) * itemsize


@exercise.alternative
def head_by_head(batch, heads, sequence, itemsize=4):
    return sum(sequence * sequence * itemsize for _ in range(batch * heads))
