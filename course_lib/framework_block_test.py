"""The way to the framework and back keeps every weight; what ours has no form for is refused."""

import pytest
import torch
from torch import nn

from course_lib.block import TransformerBlock
from course_lib.framework_block import from_torch_layer, to_torch_layer

BATCH, SEQUENCE, HEADS, D_MODEL, D_FF = 2, 5, 3, 12, 20
TOLERANCE = 1e-5
BOTH_ORDERS = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
BOTH_ACTIVATIONS = pytest.mark.parametrize("activation", ["relu", "gelu"])


def tokens():
    return torch.randn(BATCH, SEQUENCE, D_MODEL, generator=torch.Generator().manual_seed(0))


@BOTH_ORDERS
@BOTH_ACTIVATIONS
def test_weights_survive_the_way_to_the_framework_and_back(norm_first, activation):
    torch.manual_seed(0)
    there = TransformerBlock(D_MODEL, HEADS, D_FF, norm_first, activation).eval()
    for norm in (there.norm_1, there.norm_2):
        nn.init.normal_(norm.weight)
        norm.eps = 1e-3  # not the default, so that it must be carried along
    back = from_torch_layer(to_torch_layer(there))
    assert all(torch.equal(back.state_dict()[name], weight) for name, weight in there.state_dict().items())
    assert torch.equal(back(tokens()), there(tokens()))
    assert not back.training


@BOTH_ORDERS
@BOTH_ACTIVATIONS
def test_a_fresh_layer_of_the_framework_equals_our_copy(norm_first, activation):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        D_MODEL, HEADS, D_FF, activation=activation, norm_first=norm_first, batch_first=True
    ).eval()
    torch.testing.assert_close(from_torch_layer(layer)(tokens()), layer(tokens()), rtol=TOLERANCE, atol=TOLERANCE)


def test_the_copy_shares_no_memory_with_the_original():
    block = TransformerBlock(D_MODEL, HEADS, D_FF)
    layer = to_torch_layer(block)
    before = layer.linear1.weight.clone()
    nn.init.zeros_(block.ffn.linear_1.weight)
    assert torch.equal(layer.linear1.weight, before)


@pytest.mark.parametrize("options", [{"activation": torch.tanh}, {"bias": False}], ids=["activation", "no biases"])
def test_a_layer_that_ours_has_no_form_for_is_refused(options):
    layer = nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, batch_first=True, **options)
    with pytest.raises(ValueError, match="must have biases and the activation 'relu' or 'gelu'"):
        from_torch_layer(layer)
