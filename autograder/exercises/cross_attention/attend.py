"""Check `attend`: one step of a decoder over keys and values that are ready."""

from dataclasses import replace

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises import library_calls
from autograder.exercises.cross_attention import CHAPTER
from autograder.exercises.cross_attention.sizes import LAYER, LOUD, finished_layer, padding, sizes
from autograder.exercises.multi_head_attention.multi_head_attention import refuses_numbers, weights_are_shares
from autograder.program import Program, call
from course_lib import cross_attention
from course_lib.multi_head import merge_heads, split_heads
from course_lib.tensor_attention import require_mask, tensor_attention


def drawn(
    draw: Draw, masked: bool = False, target: int | None = None, all_hidden: bool = False, numbers: bool = False
) -> Program:
    """Draw a layer, tokens that ask, and keys and values; padding holds loud values."""
    size = sizes(draw)
    size = size if target is None else replace(size, target=target)
    x = draw.normal(size.batch, size.target, size.d_model)
    key, value = (draw.normal(size.batch, size.heads, size.source, size.d_head) for _ in range(2))
    layer = finished_layer(draw, size)
    if not masked:
        return call(layer, x, key, value)
    mask = padding(draw, size)
    value[mask[:, None].expand(-1, size.heads, -1)] = LOUD
    if all_hidden:
        mask[0] = True
    return call(layer, x, key, value, mask.to(x.dtype) if numbers else mask)


def step_by_step(draw: Draw) -> Program:
    """Ask three times over the same keys and values, as a decoder that writes does."""
    size = replace(sizes(draw), target=1)
    layer, mask = finished_layer(draw, size), padding(draw, size)
    key, value = (draw.normal(size.batch, size.heads, size.source, size.d_head) for _ in range(2))
    program = Program()
    for _ in range(3):
        program = program.call(layer, draw.normal(size.batch, 1, size.d_model), key, value, memory_mask=mask)
    return program


def gradients(draw: Draw) -> Program:
    """Look at the gradients of tokens, keys and values."""
    program = drawn(draw, masked=True)
    return Program().gradients(*program.steps[0].args, wrt=(1, 2, 3), weighted=True)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=cross_attention.attend,
    returns=("output", "weights"),
    properties=[weights_are_shares],
    named={LAYER: cross_attention.CrossAttention},
    forbids=library_calls.ATTENTION_LAYER,
    forbids_because="this exercise asks you to attend over keys and values that are ready",
    cases=[
        Case("no padding", drawn),
        Case("padding in the memory", lambda draw: drawn(draw, masked=True)),
        Case("one token at a time, three times", step_by_step),
        Case("a memory that is all padding", lambda draw: drawn(draw, masked=True, all_hidden=True), hidden=True),
        Case(
            "a mask of zeros and ones",
            lambda draw: drawn(draw, masked=True, numbers=True),
            hidden=True,
            judge=refuses_numbers,
        ),
        Case("gradients", gradients, hidden=True),
        Case("float64", lambda draw: drawn(draw, masked=True), hidden=True, dtype="float64"),
    ],
)


def _hidden(mask, key):
    return None if mask is None else require_mask(mask, (key.shape[0], key.shape[2]))[:, None, None, :]


def _query(layer, x):
    return split_heads(layer.w_q(x), layer.num_heads)


@exercise.misconception("""
    `w_q` has no influence on your output: x is cut into heads as it is. The keys and values are projected already;
    the queries are not.
""")
def query_not_projected(layer, x, key, value, memory_mask=None):
    output, weights = tensor_attention(split_heads(x, layer.num_heads), key, value, _hidden(memory_mask, key))
    return layer.w_o(merge_heads(output)), weights


@exercise.misconception("""
    Keys and values are projected once more, although they came out of `cache_memory`. What is kept is the result of
    the projections, so that no step has to repeat them.
""")
def projected_again(layer, x, key, value, memory_mask=None):
    key = split_heads(layer.w_k(merge_heads(key)), layer.num_heads)
    value = split_heads(layer.w_v(merge_heads(value)), layer.num_heads)
    return cross_attention.attend(layer, x, key, value, memory_mask)


@exercise.misconception("""
    Your output does not change when `w_o` does: the merged heads are returned as they are. The layer's last step is
    part of it.
""")
def no_output_projection(layer, x, key, value, memory_mask=None):
    output, weights = tensor_attention(_query(layer, x), key, value, _hidden(memory_mask, key))
    return merge_heads(output), weights


@exercise.misconception("""
    The heads are merged without moving their axis back, so that row 0 holds numbers of several tokens. With a single
    token it cannot be seen.
""")
def merged_by_view(layer, x, key, value, memory_mask=None):
    output, weights = tensor_attention(_query(layer, x), key, value, _hidden(memory_mask, key))
    return layer.w_o(output.reshape(x.shape)), weights


@exercise.misconception("""
    Your queries are cut into heads without moving an axis, so a head holds pieces of several tokens. Use
    `split_heads`.
""")
def split_by_view(layer, x, key, value, memory_mask=None):
    query = layer.w_q(x).reshape(x.shape[0], layer.num_heads, x.shape[1], layer.d_head)
    output, weights = tensor_attention(query, key, value, _hidden(memory_mask, key))
    return layer.w_o(merge_heads(output)), weights


@exercise.misconception("""
    `memory_mask` has no influence: padding gets weight. Everything about the memory is kept once, its mask included,
    and has to be used at every step.
""")
def mask_ignored(layer, x, key, value, memory_mask=None):
    return cross_attention.attend(layer, x, key, value)


@exercise.misconception("""
    Your mask works the wrong way round: all weight lies on the padding. Here True means hidden.
""")
def mask_inverted(layer, x, key, value, memory_mask=None):
    return cross_attention.attend(layer, x, key, value, None if memory_mask is None else ~memory_mask)


@exercise.misconception("""
    The mask lies on the axis of the queries. It counts tokens of the memory, which are the keys: the last axis of
    (batch, heads, query, key).
""")
def mask_on_query_axis(layer, x, key, value, memory_mask=None):
    hidden = None if memory_mask is None else memory_mask[:, None, :, None]
    output, weights = tensor_attention(_query(layer, x), key, value, hidden)
    return layer.w_o(merge_heads(output)), weights


@exercise.misconception("""
    A mask of zeros and ones is taken for what it might mean: refuse whatever is not boolean with a `TypeError`.
""")
def numbers_taken_for_a_mask(layer, x, key, value, memory_mask=None):
    return cross_attention.attend(layer, x, key, value, None if memory_mask is None else memory_mask.bool())


@exercise.misconception("""
    A memory that is all padding makes your output NaN, since a softmax of -inf alone has no value. In this course such
    a row has weights 0.
""")
def nan_when_nothing_is_seen(layer, x, key, value, memory_mask=None):
    scores = _query(layer, x) @ key.mT / layer.d_head**0.5
    hidden = _hidden(memory_mask, key)
    weights = (scores if hidden is None else scores.masked_fill(hidden, -torch.inf)).softmax(-1)
    return layer.w_o(merge_heads(weights @ value)), weights


@exercise.misconception("""
    A memory that is all padding is looked at evenly: a large negative number in every place is as even as zeros. In
    this course such a row has weights 0.
""")
def even_when_nothing_is_seen(layer, x, key, value, memory_mask=None):
    scores = _query(layer, x) @ key.mT / layer.d_head**0.5
    hidden = _hidden(memory_mask, key)
    weights = (scores if hidden is None else scores.masked_fill(hidden, -1e9)).softmax(-1)
    return layer.w_o(merge_heads(weights @ value)), weights


@exercise.misconception("""
    Your scores are divided by √d_model; a score sums over the d_head features of one head, and the keys' last axis
    says how many these are.
""")
def scaled_by_model_width(layer, x, key, value, memory_mask=None):
    query = _query(layer, x) / layer.num_heads**0.5
    output, weights = tensor_attention(query, key, value, _hidden(memory_mask, key))
    return layer.w_o(merge_heads(output)), weights


@exercise.misconception("""
    Your scores are not divided by √d_head: the shares are too sharp.
""")
def no_scale(layer, x, key, value, memory_mask=None):
    query = _query(layer, x) * layer.d_head**0.5
    output, weights = tensor_attention(query, key, value, _hidden(memory_mask, key))
    return layer.w_o(merge_heads(output)), weights


@exercise.misconception("""
    The output is right, but it comes alone. Return the pair (output, weights).
""")
def output_alone(layer, x, key, value, memory_mask=None):
    return cross_attention.attend(layer, x, key, value, memory_mask)[0]


@exercise.alternative
def by_hand(layer, x, key, value, memory_mask=None):
    b, m, d = x.shape
    query = layer.w_q(x).view(b, m, layer.num_heads, layer.d_head).transpose(1, 2)
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * layer.d_head**-0.5
    if memory_mask is not None:
        if memory_mask.dtype is not torch.bool:
            raise TypeError("memory_mask must be boolean")
        scores = scores.masked_fill(memory_mask[:, None, None], float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return layer.w_o((weights @ value).transpose(1, 2).reshape(b, m, d)), weights


@exercise.alternative
def one_head_at_a_time(layer, x, key, value, memory_mask=None):
    hidden = None if memory_mask is None else require_mask(memory_mask, (len(key), key.shape[2]))[:, None]
    query = _query(layer, x)
    found = [tensor_attention(query[:, h], key[:, h], value[:, h], hidden) for h in range(layer.num_heads)]
    output = torch.cat([head for head, _ in found], dim=-1)
    return layer.w_o(output), torch.stack([weights for _, weights in found], dim=1)


@exercise.alternative
def with_the_framework_and_weights_by_hand(layer, x, key, value, memory_mask=None):
    hidden, query = _hidden(memory_mask, key), _query(layer, x)
    shown = None if hidden is None else ~hidden
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=shown)
    return layer.w_o(merge_heads(output)), tensor_attention(query, key, value, hidden)[1]
