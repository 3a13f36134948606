"""Cross-attention against the framework's layer, and what must and must not move it."""

import jaxtyping
import pytest
import torch
from torch import nn

from course_lib.cross_attention import CrossAttention, attend, cache_memory, single_head_cross_attention
from course_lib.flop_counter import counted_flops
from course_lib.framework_attention import to_torch_attention
from course_lib.multi_head import MultiHeadAttention

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
BATCH, TARGET, SOURCE, HEADS, D_MODEL = 2, 4, 7, 3, 15

dtypes = pytest.mark.parametrize("dtype", TOLERANCE, ids=["float32", "float64"])


@pytest.fixture
def unannotated(monkeypatch):
    """Let a wrong argument through to our own sentence."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def layer_and_inputs(dtype=torch.float64):
    torch.manual_seed(0)
    layer = CrossAttention(D_MODEL, HEADS).to(dtype)
    x, memory = torch.randn(BATCH, TARGET, D_MODEL, dtype=dtype), torch.randn(BATCH, SOURCE, D_MODEL, dtype=dtype)
    mask = torch.zeros(BATCH, SOURCE, dtype=torch.bool)
    mask[1, -3:] = True
    return layer, x, memory, mask


def framework_layer(layer: CrossAttention) -> nn.MultiheadAttention:
    twin = MultiHeadAttention(D_MODEL, HEADS).to(layer.w_q.weight.dtype)
    twin.load_state_dict(layer.state_dict())
    return to_torch_attention(twin)


@dtypes
def test_it_equals_the_framework_with_copied_weights_forward_and_backward(dtype):
    layer, x, memory, mask = layer_and_inputs(dtype)
    theirs = framework_layer(layer)
    found = []
    for call in (
        lambda x, memory: layer(x, memory, mask),
        lambda x, memory: theirs(x, memory, memory, key_padding_mask=mask, average_attn_weights=False),
    ):
        inputs = [tensor.clone().requires_grad_() for tensor in (x, memory)]
        output, weights = call(*inputs)
        gradients = torch.autograd.grad(output.square().sum(), inputs)
        found.append((output, weights, *gradients))
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=100 * TOLERANCE[dtype])


def test_what_is_hidden_in_the_memory_has_no_influence():
    layer, x, memory, mask = layer_and_inputs()
    before = layer(x, memory, mask)[0]
    memory[1, -3:] = 1000.0
    torch.testing.assert_close(layer(x, memory, mask)[0], before, rtol=0, atol=0)


def test_a_memory_that_is_all_hidden_gives_weights_zero_and_finite_gradients():
    layer, x, memory, mask = layer_and_inputs()
    mask[0] = True
    memory.requires_grad_()
    output, weights = layer(x, memory, mask)
    assert not weights[0].any()
    torch.testing.assert_close(output[0], layer.w_o.bias.expand(TARGET, -1))
    output.sum().backward()
    assert memory.grad.isfinite().all()
    assert not memory.grad[0].any()


def test_the_order_of_the_memory_does_not_matter_without_positions():
    layer, x, memory, _ = layer_and_inputs()
    order = torch.randperm(SOURCE)
    torch.testing.assert_close(layer(x, memory[:, order])[0], layer(x, memory)[0])


def test_every_query_stands_by_itself():
    layer, x, memory, mask = layer_and_inputs()
    alone = torch.cat([layer(x[:, [place]], memory, mask)[0] for place in range(TARGET)], dim=1)
    torch.testing.assert_close(alone, layer(x, memory, mask)[0])


def test_attending_over_the_cache_equals_the_layer():
    layer, x, memory, mask = layer_and_inputs()
    key, value = cache_memory(layer, memory)
    assert key.shape == value.shape == (BATCH, HEADS, SOURCE, D_MODEL // HEADS)
    for ours, expected in zip(attend(layer, x, key, value, mask), layer(x, memory, mask), strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=0)


def test_the_cache_costs_two_projections_and_attending_none_of_the_memory():
    layer, x, memory, _ = layer_and_inputs()
    projection = 2 * BATCH * D_MODEL * D_MODEL
    key, value = cache_memory(layer, memory)
    assert counted_flops(cache_memory, layer, memory) == 2 * SOURCE * projection
    products = 2 * 2 * BATCH * TARGET * SOURCE * D_MODEL
    assert counted_flops(attend, layer, x, key, value) == 2 * TARGET * projection + products


@pytest.mark.parametrize(
    ("mask", "error"),
    [(torch.zeros(BATCH, SOURCE), TypeError), (torch.zeros(BATCH, TARGET, dtype=torch.bool), ValueError)],
    ids=["numbers", "the mask of the target"],
)
def test_a_mask_that_cannot_be_meant_is_refused(unannotated, mask, error):
    layer, x, memory, _ = layer_and_inputs()
    with pytest.raises(error, match="`mask`"):
        layer(x, memory, mask)


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="15 features do not go into 4"):
        CrossAttention(15, 4)


@dtypes
def test_the_single_head_equals_the_framework_function_where_both_sides_differ_in_width(dtype):
    torch.manual_seed(1)
    x, memory = torch.randn(2, 4, 6, dtype=dtype), torch.randn(2, 7, 9, dtype=dtype)
    w_q, w_k, w_v = (torch.randn(*shape, dtype=dtype) for shape in ((6, 3), (9, 3), (9, 5)))
    expected = nn.functional.scaled_dot_product_attention(x @ w_q, memory @ w_k, memory @ w_v)
    found = single_head_cross_attention(x, memory, w_q, w_k, w_v)
    torch.testing.assert_close(found, expected, rtol=0, atol=100 * TOLERANCE[dtype])
