"""Our layer and `nn.MultiheadAttention` give the same numbers with the same weights."""

import pytest
import torch
from torch import nn

from course_lib.framework_attention import from_torch_attention, to_torch_attention
from course_lib.multi_head import MultiHeadAttention

D_MODEL, HEADS = 12, 3
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
EVERY_DTYPE = pytest.mark.parametrize("dtype", TOLERANCE)
WITH_OR_WITHOUT_BIAS = pytest.mark.parametrize("bias", [True, False])


def layer(dtype=torch.float64, bias=True):
    """Build a layer whose biases are not the framework's starting zeros."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(D_MODEL, HEADS, bias)
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    return attention.to(dtype)


def draw(*shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


@EVERY_DTYPE
@WITH_OR_WITHOUT_BIAS
def test_the_framework_gives_the_same_output_and_weights(bias, dtype):
    attention = layer(dtype, bias)
    query, memory = draw(2, 5, D_MODEL, dtype=dtype), draw(2, 7, D_MODEL, dtype=dtype)
    mask = torch.ones(5, 7, dtype=torch.bool).triu(3)
    output, weights = attention(query, memory, memory, mask)
    framework = to_torch_attention(attention)
    theirs, maps = framework(query, memory, memory, attn_mask=mask, average_attn_weights=False)
    assert framework.batch_first
    torch.testing.assert_close(theirs, output, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    torch.testing.assert_close(maps, weights, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_the_frameworks_gradients_are_the_same():
    attention, x = layer(), draw(2, 5, D_MODEL)
    framework = to_torch_attention(attention)
    attention(x, x, x)[0].square().sum().backward()
    framework(x, x, x)[0].square().sum().backward()
    stacked = torch.cat([attention.get_submodule(name).weight.grad for name in ("w_q", "w_k", "w_v")])
    torch.testing.assert_close(framework.in_proj_weight.grad, stacked, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(framework.out_proj.weight.grad, attention.w_o.weight.grad, rtol=1e-9, atol=1e-12)


@WITH_OR_WITHOUT_BIAS
def test_a_way_there_and_back_changes_no_weight(bias):
    attention = layer(bias=bias).eval()
    back = from_torch_attention(to_torch_attention(attention))
    assert back.training is attention.training
    assert back.state_dict().keys() == attention.state_dict().keys()
    for name, weight in attention.state_dict().items():
        assert torch.equal(back.state_dict()[name], weight), name


def test_the_weights_are_copies():
    attention = layer()
    framework = to_torch_attention(attention)
    nn.init.zeros_(attention.w_o.weight)
    assert framework.out_proj.weight.abs().sum() > 0


@pytest.mark.parametrize("options", [{"kdim": 6}, {"add_bias_kv": True}, {"add_zero_attn": True}])
def test_a_framework_layer_with_extras_is_refused(options):
    with pytest.raises(ValueError, match="`layer` must have one width"):
        from_torch_attention(nn.MultiheadAttention(D_MODEL, HEADS, **options))
