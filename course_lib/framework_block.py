"""Carry the weights of a block over to `nn.TransformerEncoderLayer` and back.

The framework's names map to ours as self_attn → `attention`, linear1 → `ffn.linear_1`, norm1 → `norm_1`.
"""

from torch import nn

from course_lib.block import TransformerBlock
from course_lib.feed_forward import ACTIVATIONS
from course_lib.framework_attention import from_torch_attention, to_torch_attention

NAMES = {  # ours and the framework's, of the parts that are stored alike
    "ffn.linear_1": "linear1",
    "ffn.linear_2": "linear2",
    "norm_1": "norm1",
    "norm_2": "norm2",
}


def to_torch_layer(block: TransformerBlock) -> nn.TransformerEncoderLayer:
    """Build the framework's layer, without dropout, with a copy of the block's weights; its outputs are the same."""
    weight = block.ffn.linear_1.weight
    layer = nn.TransformerEncoderLayer(
        weight.shape[1],
        block.attention.num_heads,
        dim_feedforward=weight.shape[0],
        dropout=0.0,
        activation=block.ffn.activation,
        layer_norm_eps=block.norm_1.eps,
        norm_first=block.norm_first,
        batch_first=True,
        device=weight.device,
        dtype=weight.dtype,
    )
    layer.self_attn.load_state_dict(to_torch_attention(block.attention).state_dict())
    for ours, theirs in NAMES.items():
        layer.get_submodule(theirs).load_state_dict(block.get_submodule(ours).state_dict())
    return layer.train(block.training)


def from_torch_layer(layer: nn.TransformerEncoderLayer) -> TransformerBlock:
    """Build our block with a copy of the weights of a `nn.TransformerEncoderLayer`; dropout is left out.

    Raises:
        ValueError: the layer's activation is neither ReLU nor GELU, or its parts have no biases.
    """
    found = [name for name, function in ACTIVATIONS.items() if layer.activation is function]
    if not found or layer.linear1.bias is None:
        raise ValueError("`layer` must have biases and the activation 'relu' or 'gelu'; ours has no other form.")
    block = TransformerBlock(
        layer.linear1.in_features,
        layer.self_attn.num_heads,
        layer.linear1.out_features,
        norm_first=layer.norm_first,
        activation=found[0],
    ).to(layer.linear1.weight)
    block.attention.load_state_dict(from_torch_attention(layer.self_attn).state_dict())
    for ours, theirs in NAMES.items():
        block.get_submodule(ours).load_state_dict(layer.get_submodule(theirs).state_dict())
    for ours, theirs in ((block.norm_1, layer.norm1), (block.norm_2, layer.norm2)):
        ours.eps = theirs.eps
    return block.train(layer.training)
