"""Carry the weights of a layer over to `nn.MultiheadAttention` and back.

The framework stacks the three input projections, queries first, into one `in_proj_weight` of shape
(3 d_model, d_model), and keeps the output projection as `out_proj`. Like `nn.Linear` it stores a weight as
(out, in), so nothing is transposed on the way.
"""

import torch
from torch import nn

from course_lib.multi_head import MultiHeadAttention


def to_torch_attention(attention: MultiHeadAttention) -> nn.MultiheadAttention:
    """Build the framework's layer with a copy of `attention`'s weights; its outputs are the same.

    The framework returns the mean of the heads' weights unless it is called with `average_attn_weights=False`.
    """
    weight = attention.w_q.weight
    layer = nn.MultiheadAttention(
        weight.shape[0],
        attention.num_heads,
        bias=attention.w_q.bias is not None,
        batch_first=True,
        device=weight.device,
        dtype=weight.dtype,
    )
    projections = (attention.w_q, attention.w_k, attention.w_v)
    state = {
        "in_proj_weight": torch.cat([projection.weight for projection in projections]),
        "out_proj.weight": attention.w_o.weight,
    }
    if attention.w_q.bias is not None:
        state["in_proj_bias"] = torch.cat([projection.bias for projection in projections])
        state["out_proj.bias"] = attention.w_o.bias
    layer.load_state_dict(state)
    return layer.train(attention.training)


def from_torch_attention(layer: nn.MultiheadAttention) -> MultiHeadAttention:
    """Build our layer with a copy of the weights of a `nn.MultiheadAttention`.

    Raises:
        ValueError: `layer` has what ours has not: keys or values of another width, or learned extra keys.
    """
    if layer.in_proj_weight is None or layer.bias_k is not None or layer.add_zero_attn:
        raise ValueError(
            "`layer` must have one width for queries, keys and values and no added keys: build it without kdim, "
            "vdim, add_bias_kv and add_zero_attn."
        )
    attention = MultiHeadAttention(layer.embed_dim, layer.num_heads, bias=layer.in_proj_bias is not None)
    names = ("w_q", "w_k", "w_v")
    state = dict(zip((f"{name}.weight" for name in names), layer.in_proj_weight.chunk(3), strict=True))
    state["w_o.weight"] = layer.out_proj.weight
    if layer.in_proj_bias is not None:
        state |= zip((f"{name}.bias" for name in names), layer.in_proj_bias.chunk(3), strict=True)
        state["w_o.bias"] = layer.out_proj.bias
    attention.to(device=layer.in_proj_weight.device, dtype=layer.in_proj_weight.dtype)
    attention.load_state_dict(state)
    return attention.train(layer.training)
