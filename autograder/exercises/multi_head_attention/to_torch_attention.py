"""Check `to_torch_attention`: carry a layer's weights over to the framework's own layer."""

from typing import Any

import torch
from torch import nn

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.multi_head_attention import CHAPTER
from autograder.exercises.multi_head_attention.sizes import Sizes, layer_state, sizes
from autograder.program import Program, build
from autograder.values import Named
from course_lib import framework_attention
from course_lib.framework_attention import to_torch_attention
from course_lib.multi_head import MultiHeadAttention


def converted(draw: Draw, size: Sizes, bias: bool = True) -> Program:
    """Convert a layer with drawn weights; the steps that follow are about the framework's layer."""
    layer = Named("MultiHeadAttention", (size.d_model, size.heads, bias), layer_state(draw, size.d_model, bias))
    return build(layer)


def self_attention(draw: Draw, bias: bool = True) -> Program:
    """Let the tokens of a batch look at each other."""
    size = sizes(draw)
    x = draw.normal(size.batch, size.query, size.d_model)
    return converted(draw, size, bias).call(x, x, x)


def other_keys(draw: Draw) -> Program:
    """Let queries look at other tokens, past a mask."""
    size = sizes(draw)
    query = draw.normal(size.batch, size.query, size.d_model)
    key, value = (draw.normal(size.batch, size.key, size.d_model) for _ in range(2))
    return converted(draw, size).call(query, key, value, attn_mask=draw.mask(size.query, size.key))


def every_map(draw: Draw) -> Program:
    """Ask the framework for every head's map."""
    size = sizes(draw)
    x = draw.normal(size.batch, size.query, size.d_model)
    return converted(draw, size).call(x, x, x, average_attn_weights=False)


def made_of(draw: Draw) -> Program:
    """Read what the framework's layer knows of itself."""
    size = sizes(draw)
    return converted(draw, size).read("embed_dim").read("num_heads").read("batch_first")


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=framework_attention.to_torch_attention,
    returns=("output", "mean weights"),
    named={"MultiHeadAttention": MultiHeadAttention},
    cases=[
        Case("self-attention with 3 heads", self_attention),
        Case("what the layer knows of itself", made_of),
        Case("other keys and a mask", other_keys, hidden=True),
        Case("the map of every head", every_map, hidden=True),
        Case("without biases", lambda draw: self_attention(draw, bias=False), hidden=True),
        Case("float64", self_attention, hidden=True, dtype="float64"),
    ],
)


def _fresh(attention: Any, heads: int | None = None, batch_first: bool = True) -> nn.MultiheadAttention:
    weight = attention.w_q.weight
    bias = attention.w_q.bias is not None
    heads = heads or attention.num_heads
    return nn.MultiheadAttention(len(weight), heads, bias=bias, batch_first=batch_first, dtype=weight.dtype)


def _altered(attention: Any, **changes: Any) -> nn.MultiheadAttention:
    """Convert rightly, then change entries of the state."""
    layer = to_torch_attention(attention)
    state = layer.state_dict()
    for name, change in changes.items():
        if name in state or name.replace("__", ".") in state:
            key = name.replace("__", ".")
            state[key] = change(state[key])
    layer.load_state_dict(state)
    return layer


def _swap_first_two(stacked: torch.Tensor) -> torch.Tensor:
    first, second, third = stacked.chunk(3)
    return torch.cat([second, first, third])


def _by_heads(heads: int) -> Any:
    """Order the rows as one block for each head, with its queries, keys and values inside."""
    return lambda stacked: stacked.unflatten(0, (3, heads, -1)).transpose(0, 1).flatten(0, 2)


def _transposed_blocks(stacked: torch.Tensor) -> torch.Tensor:
    return torch.cat([block.T for block in stacked.chunk(3)])


@exercise.misconception("""
    The weights are there, but the biases are not: the framework's layer starts with zeros in `in_proj_bias`
    and `out_proj.bias`. Stack the three input biases like the weights, and copy the one of `w_o`.
""")
def biases_left_at_zero(attention):
    return _altered(attention, in_proj_bias=torch.zeros_like, out_proj__bias=torch.zeros_like)


@exercise.misconception("""
    The biases of the three input projections are missing: `in_proj_bias` still holds the framework's zeros.
    Stack the three biases in the same order as the weights.
""")
def input_biases_left_at_zero(attention):
    return _altered(attention, in_proj_bias=torch.zeros_like)


@exercise.misconception("""
    The bias of the output projection is missing: `out_proj.bias` still holds the framework's zeros.
""")
def output_bias_left_at_zero(attention):
    return _altered(attention, out_proj__bias=torch.zeros_like)


@exercise.misconception("""
    You transposed the input projections. Both `nn.Linear` and the framework's `in_proj_weight` store a weight
    as (out, in), so the three blocks go over as they are. A square matrix hides a transpose from every shape
    check.
""")
def input_weights_transposed(attention):
    return _altered(attention, in_proj_weight=_transposed_blocks)


@exercise.misconception("""
    You transposed the output projection. `out_proj` is an `nn.Linear` like `w_o`, so its weight goes over as
    it is. A square matrix hides a transpose from every shape check.
""")
def output_weight_transposed(attention):
    return _altered(attention, out_proj__weight=lambda weight: weight.T)


@exercise.misconception("""
    The blocks of `in_proj_weight` are in another order than the framework reads them: queries and keys have
    changed places. It reads queries first, then keys, then values.
""")
def keys_first(attention):
    return _altered(attention, in_proj_weight=_swap_first_two, in_proj_bias=_swap_first_two)


@exercise.misconception("""
    Your `in_proj_weight` goes head by head: the queries, keys and values of head 0, then those of head 1.
    Some models store it so, and it is consistent in itself; this layer reads three whole blocks: all queries,
    all keys, all values.
""")
def stacked_head_by_head(attention):
    reorder = _by_heads(attention.num_heads)
    return _altered(attention, in_proj_weight=reorder, in_proj_bias=reorder)


@exercise.misconception("""
    The framework's layer runs with a single head. Every weight fits all the same, because heads change no
    shape: hand `attention.num_heads` over.
""")
def single_head(attention):
    layer = _fresh(attention, heads=1)
    layer.load_state_dict(to_torch_attention(attention).state_dict())
    return layer


@exercise.misconception("""
    The weights are right, but the layer reads its input as (sequence, batch, d_model), so tokens look at the
    other rows of the batch. That is the framework's default; ask for `batch_first=True`.
""")
def sequence_first(attention):
    layer = _fresh(attention, batch_first=False)
    layer.load_state_dict(to_torch_attention(attention).state_dict())
    return layer


@exercise.misconception("""
    You return the layer that you were given. Build the framework's own `nn.MultiheadAttention` and fill it
    with this layer's weights: it is the independent witness that your layer is right.
""")
def the_same_layer_again(attention):
    return attention


@exercise.misconception("""
    A float64 layer comes back in float32: `nn.MultiheadAttention` is built in the default dtype. Hand the
    weights' dtype over, or move the layer with `.to(...)` before you fill it.
""")
def left_in_float32(attention):
    return to_torch_attention(attention).float()


@exercise.misconception("""
    A layer without biases meets code that expects them: where `bias=False`, each projection's `.bias` is
    None. Build the framework's layer with `bias=False` in that case and leave the two biases out.
""")
def biases_expected(attention):
    torch.cat([attention.w_q.bias, attention.w_k.bias, attention.w_v.bias])
    return to_torch_attention(attention)


@exercise.alternative
def copied_in_place(attention):
    layer = _fresh(attention)
    with torch.no_grad():
        for index, linear in enumerate((attention.w_q, attention.w_k, attention.w_v)):
            rows = slice(index * layer.embed_dim, (index + 1) * layer.embed_dim)
            layer.in_proj_weight[rows] = linear.weight
            if linear.bias is not None:
                layer.in_proj_bias[rows] = linear.bias
        layer.out_proj.weight.copy_(attention.w_o.weight)
        if attention.w_o.bias is not None:
            layer.out_proj.bias.copy_(attention.w_o.bias)
    return layer


@exercise.alternative
def shared_parameters(attention):
    layer = _fresh(attention)
    linears = (attention.w_q, attention.w_k, attention.w_v)
    layer.in_proj_weight = nn.Parameter(torch.cat([linear.weight.detach() for linear in linears]))
    if attention.w_q.bias is not None:
        layer.in_proj_bias = nn.Parameter(torch.cat([linear.bias.detach() for linear in linears]))
    layer.out_proj.load_state_dict(attention.w_o.state_dict())
    return layer


@exercise.alternative
def zero_biases_where_there_were_none(attention):
    weight = attention.w_q.weight
    layer = nn.MultiheadAttention(len(weight), attention.num_heads, batch_first=True).to(weight.dtype)
    layer.load_state_dict(to_torch_attention(attention).state_dict(), strict=False)
    return layer


@exercise.alternative
def in_evaluation_mode(attention):
    return to_torch_attention(attention).eval()
