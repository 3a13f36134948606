"""Check `cache_memory`: the memory is projected once, to the keys and values of every head."""

from dataclasses import replace

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.cross_attention import CHAPTER
from autograder.exercises.cross_attention.sizes import LAYER, finished_layer, sizes
from autograder.program import Program, Run, call
from course_lib import cross_attention
from course_lib.multi_head import split_heads

ENOUGH = 2  # matrix products: one for all keys, one for all values


def drawn(draw: Draw, batch: int | None = None, heads: int = 3) -> Program:
    """Draw a layer and a memory."""
    size = replace(sizes(draw), heads=heads)
    memory = draw.normal(batch or size.batch, size.source, size.d_model)
    return call(finished_layer(draw, size), memory).counting()


def two_products(program: Program, run: Run) -> str | None:
    """Say how many matrix products ran, if they were more than two."""
    assert run.counts is not None
    found = run.counts.matrix_products
    if found <= ENOUGH:
        return None
    return f"the values are right, but {found} matrix products ran and {ENOUGH} are enough"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=cross_attention.cache_memory,
    returns=("key", "value"),
    named={LAYER: cross_attention.CrossAttention},
    cases=[
        Case("3 heads", drawn, limit=two_products),
        Case("a single source", lambda draw: drawn(draw, batch=1), limit=two_products),
        Case("6 heads", lambda draw: drawn(draw, heads=6), hidden=True, limit=two_products),
        Case("other sizes", drawn, hidden=True, limit=two_products),
        Case("float64", drawn, hidden=True, limit=two_products, dtype="float64"),
    ],
)


def _split(layer, x):
    return split_heads(x, layer.num_heads)


@exercise.misconception("""
    Keys and values come out whole, (batch, source, d_model): the split into heads is still to be done. Whatever does
    not depend on the query can be done once, and the split does not.
""")
def left_whole(layer, memory):
    return layer.w_k(memory), layer.w_v(memory)


@exercise.misconception("""
    You cut the raw memory into heads, without `w_k` and `w_v`. The projections are what costs; kept like this, they
    would have to run again at every step.
""")
def not_projected(layer, memory):
    return _split(layer, memory), _split(layer, memory)


@exercise.misconception("""
    The two results are in the other order: the key first, then the value.
""")
def value_first(layer, memory):
    return cross_attention.cache_memory(layer, memory)[::-1]


@exercise.misconception("""
    Your second result is made by `w_k` too. What a place is found by and what it hands over are two projections.
""")
def key_twice(layer, memory):
    key = _split(layer, layer.w_k(memory))
    return key, key.clone()


@exercise.misconception("""
    Your keys went through `w_q`. Queries are made from what the decoder writes, at each step anew; the memory is
    projected by `w_k` and `w_v`.
""")
def keys_by_w_q(layer, memory):
    return _split(layer, layer.w_q(memory)), _split(layer, layer.w_v(memory))


@exercise.misconception("""
    Shapes are right, but your split cuts the memory without moving an axis, so a head holds pieces of a few tokens.
    `split_heads` of chapter 2 keeps them apart.
""")
def split_by_view(layer, memory):
    batch, source, _ = memory.shape
    shape = (batch, layer.num_heads, source, layer.d_head)
    return layer.w_k(memory).reshape(shape), layer.w_v(memory).reshape(shape)


@exercise.misconception("""
    The heads stand behind the source's tokens: (batch, source, heads, d_head). Attention works on the last two axes,
    so the heads must stand before them.
""")
def heads_not_moved(layer, memory):
    return tuple(_split(layer, w(memory)).transpose(1, 2) for w in (layer.w_k, layer.w_v))


@exercise.misconception("""
    The values are right, but each token was projected by itself. The memory is complete before the decoder begins:
    one product takes all of its tokens.
""")
def token_by_token(layer, memory):
    tokens = memory.split(1, dim=1)
    key = torch.cat([layer.w_k(token) for token in tokens], 1)
    value = torch.cat([layer.w_v(token) for token in tokens], 1)
    return _split(layer, key), _split(layer, value)


@exercise.misconception("""
    The values are right, but the whole layer ran on the way, with queries, scores and output. Nothing asks yet: two
    projections are all that is needed.
""")
def whole_layer_run(layer, memory):
    layer(memory, memory)
    return cross_attention.cache_memory(layer, memory)


@exercise.misconception("""
    Your keys are turned, (batch, heads, d_head, source), ready for a product. It saves nothing, as turning moves no
    number, and `attend` would have to know. Keep both results alike.
""")
def key_transposed(layer, memory):
    key, value = cross_attention.cache_memory(layer, memory)
    return key.mT, value


@exercise.alternative
def in_one_product(layer, memory):
    weight = torch.cat([layer.w_k.weight, layer.w_v.weight])
    both = torch.nn.functional.linear(memory, weight, torch.cat([layer.w_k.bias, layer.w_v.bias]))
    key, value = both.chunk(2, dim=-1)
    return _split(layer, key), _split(layer, value)


@exercise.alternative
def by_view_and_transpose(layer, memory):
    b, n, _ = memory.shape
    key = layer.w_k(memory).view(b, n, layer.num_heads, -1).transpose(1, 2)
    value = layer.w_v(memory).view(b, n, layer.num_heads, -1).permute(0, 2, 1, 3).contiguous()
    return [key, value]


@exercise.alternative
def by_hand(layer, memory):
    return tuple(
        torch.stack((memory @ w.weight.T + w.bias).chunk(layer.num_heads, dim=-1), dim=1)
        for w in (layer.w_k, layer.w_v)
    )


@exercise.alternative
def by_einsum(layer, memory):
    def project(w):
        rows = w.weight.unflatten(0, (layer.num_heads, -1))
        return torch.einsum("bnd,hed->bhne", memory, rows) + w.bias.view(1, layer.num_heads, 1, -1)

    return project(layer.w_k), project(layer.w_v)
