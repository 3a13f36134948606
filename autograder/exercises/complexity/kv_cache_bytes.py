"""Check `kv_cache_bytes`: the keys and values that generation keeps."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.complexity import CHAPTER
from autograder.program import Program, call
from course_lib import costs


def drawn(draw: Draw, batch: int | None = None, itemsize: int | None = None) -> Program:
    """Draw sizes that all differ."""
    layers, kv_heads = draw.sizes(2, low=3, high=12)
    given = {"batch": batch, "itemsize": itemsize}
    return call(
        layers,
        kv_heads,
        draw.integer(20, 40),
        draw.integer(50, 99),
        **{name: value for name, value in given.items() if value is not None},
    )


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=costs.kv_cache_bytes,
    returns=("the number of bytes",),
    cases=[
        Case("Llama 3 8B after 8192 tokens", lambda draw: call(32, 8, 128, 8192)),
        Case("all sizes differ", drawn),
        Case("a batch in float32", lambda draw: drawn(draw, 5, 4)),
        Case("a batch", lambda draw: drawn(draw, 13), hidden=True),
        Case("8-bit numbers", lambda draw: drawn(draw, None, 1), hidden=True),
        Case("one head of keys and values", lambda draw: call(7, 1, 64, draw.integer(50, 99), 3), hidden=True),
    ],
)


@exercise.misconception("""
    Your result is half of ours: keys **or** values are in it. A later token needs both.
""")
def keys_alone(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return layers * kv_heads * d_head * sequence * batch * itemsize


@exercise.misconception("""
    Three tensors are in your cache. An old query is never asked again: who would still need it?
""")
def queries_kept_too(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return 3 * layers * kv_heads * d_head * sequence * batch * itemsize


@exercise.misconception("""
    Your cache is that of one layer. Every layer has keys and values of its own.
""")
def one_layer(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return 2 * kv_heads * d_head * sequence * batch * itemsize


@exercise.misconception("""
    Your cache grows with the square of the sequence. Each token adds one key and one value; the square belongs to the
    attention map, which is not kept.
""")
def squared_in_the_sequence(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return 2 * layers * kv_heads * d_head * sequence**2 * batch * itemsize


@exercise.misconception("""
    Your cache is the sum over all steps, as if each step kept a whole cache of its own. One cache grows by a token at
    a time; asked for is its size at the end.
""")
def summed_over_steps(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return 2 * layers * kv_heads * d_head * (sequence * (sequence + 1) // 2) * batch * itemsize


@exercise.misconception("""
    Your result is that of one token. The cache holds `sequence` of them.
""")
def one_token(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return 2 * layers * kv_heads * d_head * batch * itemsize


@exercise.misconception("""
    The number of heads is in your result twice. `d_head` is the width of **one** head; only the model's whole width
    has all heads in it already.
""")
def heads_twice(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return 2 * layers * kv_heads * kv_heads * d_head * sequence * batch * itemsize


@exercise.misconception("""
    Your result is that of one head. There are `kv_heads` heads of keys and values in every layer.
""")
def one_head(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return 2 * layers * d_head * sequence * batch * itemsize


@exercise.misconception("""
    Your result does not depend on `d_head`. A key is a vector of that many numbers.
""")
def one_number_per_head(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return 2 * layers * kv_heads * sequence * batch * itemsize


@exercise.misconception("""
    Your result does not depend on the batch. Each sequence has a history of its own.
""")
def batch_forgotten(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return 2 * layers * kv_heads * d_head * sequence * itemsize


@exercise.misconception("""
    Four bytes are built in. Caches are usually kept in half precision, and `itemsize` says what to count.
""")
def four_bytes_built_in(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return 2 * layers * kv_heads * d_head * sequence * batch * 4


@exercise.misconception("""
    Two bytes are built in: `itemsize` has no influence. Some caches are kept in 8 bits, some in float32.
""")
def two_bytes_built_in(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return 2 * layers * kv_heads * d_head * sequence * batch * 2


@exercise.misconception("""
    Your result is a number of entries. Each takes `itemsize` bytes.
""")
def entries_not_bytes(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return 2 * layers * kv_heads * d_head * sequence * batch


@exercise.alternative
def token_by_token(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    per_token = layers * (kv_heads * d_head * itemsize + kv_heads * d_head * itemsize)
    return batch * sequence * per_token


@exercise.alternative
def measured_on_tensors(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    dtype = {1: torch.int8, 2: torch.bfloat16, 4: torch.float32}[itemsize]
    shape = (2, layers, batch, kv_heads, sequence, d_head)
    return torch.empty(shape, dtype=dtype, device="meta").nbytes


@exercise.alternative
def by_a_sum(layers, kv_heads, d_head, sequence, batch=1, itemsize=2):
    return sum(2 * kv_heads * d_head * sequence * batch * itemsize for _ in range(layers))
