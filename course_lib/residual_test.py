"""Residual steps against the framework's own layers, dropout by statistics, gradient norms against full Jacobians."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.residual import dropout, gradient_norms, post_norm_step, pre_norm_step

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
PRECISIONS = pytest.mark.parametrize("dtype", TOLERANCE)
MANY = 100_000  # entries: shares are then known to about half a percent


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, dtype=torch.float64, seed=0):
    return 1 + 3 * torch.randn(shape, dtype=dtype, generator=seeded(seed))


@PRECISIONS
@pytest.mark.parametrize("norm_first", [False, True])
def test_two_steps_make_the_frameworks_encoder_layer(norm_first, dtype):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        8, 2, dim_feedforward=12, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=dtype
    )
    for norm in (layer.norm1, layer.norm2):
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    step = pre_norm_step if norm_first else post_norm_step
    x = draw(3, 5, 8, dtype=dtype)
    attended = step(x, lambda inner: layer.self_attn(inner, inner, inner)[0], layer.norm1)
    got = step(attended, lambda inner: layer.linear2(torch.relu(layer.linear1(inner))), layer.norm2)
    torch.testing.assert_close(got, layer(x), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_sublayer_that_gives_zero_leaves_x_in_pre_norm_and_its_norm_in_post_norm():
    x, norm = draw(2, 3, 5), nn.LayerNorm(5, dtype=torch.float64)
    torch.testing.assert_close(pre_norm_step(x, torch.zeros_like, norm), x, rtol=0, atol=0)
    torch.testing.assert_close(post_norm_step(x, torch.zeros_like, norm), norm(x), rtol=0, atol=0)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_drops_the_share_p_and_scales_the_rest(p):
    x = torch.full((MANY,), 3.0)
    result = dropout(x, p, training=True, generator=seeded())
    dropped = result == 0
    assert dropped.double().mean().item() == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / MANY))
    torch.testing.assert_close(result[~dropped], torch.full_like(result[~dropped], 3 / (1 - p)))


def test_dropout_equals_the_framework_in_mean_and_variance():
    x, p = draw(MANY), 0.3
    torch.manual_seed(2)  # x has the chances of seed 0 in it
    ours, theirs = dropout(x, p, True, seeded(1)), F.dropout(x, p, True)
    spread_of_means = 5 * theirs.std().item() * math.sqrt(2 / MANY)
    assert ours.mean().item() == pytest.approx(theirs.mean().item(), abs=spread_of_means)
    assert ours.var().item() == pytest.approx(theirs.var().item(), rel=0.05)


def test_dropout_changes_nothing_outside_training_or_with_p_zero():
    x = draw(4, 5)
    assert torch.equal(dropout(x, 0.7, training=False), x)
    assert torch.equal(dropout(x, 0.0, training=True), x)


def test_equal_generators_drop_the_same_entries_and_none_uses_torchs_own():
    x = draw(50)
    assert torch.equal(dropout(x, 0.5, True, seeded(1)), dropout(x, 0.5, True, seeded(1)))
    assert not torch.equal(dropout(x, 0.5, True, seeded(1)), dropout(x, 0.5, True, seeded(2)))
    torch.manual_seed(3)
    first = dropout(x, 0.5, True)
    torch.manual_seed(3)
    assert torch.equal(first, dropout(x, 0.5, True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dropout_keeps_the_dtype_and_carries_gradients_only_through_what_is_kept(dtype):
    x = torch.ones(40, dtype=dtype, requires_grad=True)
    result = dropout(x, 0.5, True, seeded())
    assert result.dtype == dtype
    result.sum().backward()
    assert torch.equal(x.grad, result.detach())


@pytest.mark.parametrize("p", [1.0, -0.1, 1.5, math.nan])
def test_dropout_refuses_a_share_outside_its_range(p):
    with pytest.raises(ValueError, match=r"`p` must be at least 0 and below 1"):
        dropout(torch.ones(3), p, training=True)


@PRECISIONS
def test_gradient_norms_equal_those_of_full_jacobians(dtype):
    torch.manual_seed(0)
    blocks = [nn.Linear(3, 5, dtype=dtype), torch.tanh, nn.Linear(5, 4, dtype=dtype), nn.LayerNorm(4, dtype=dtype)]
    blocks[3].weight.data.normal_()
    x = draw(2, 3, dtype=dtype)
    got = gradient_norms(blocks, x)

    def rest(k):
        modules = [block if isinstance(block, nn.Module) else nn.Tanh() for block in blocks[k:]]
        return nn.Sequential(*modules)

    flowing = x
    for k, block in enumerate(blocks):
        jacobian = torch.autograd.functional.jacobian(rest(k), flowing)
        summed = jacobian.flatten(0, 1).sum(0)
        assert got[k] == pytest.approx(summed.norm().item(), rel=100 * TOLERANCE[dtype])
        flowing = block(flowing).detach()
    assert all(type(number) is float for number in got)


def test_gradient_norms_of_scalings_are_their_products():
    factors = [2.0, -3.0, 0.5]
    blocks = [lambda x, factor=factor: factor * x for factor in factors]
    assert gradient_norms(blocks, torch.ones(4)) == pytest.approx([6.0, 3.0, 1.0])


def test_gradient_norms_are_zero_before_a_block_that_ignores_its_input():
    blocks = [torch.tanh, lambda x: torch.ones_like(x), lambda x: 2 * x]
    assert gradient_norms(blocks, torch.ones(9)) == pytest.approx([0.0, 0.0, 6.0])
    assert gradient_norms(blocks[:2], torch.ones(9)) == [0.0, 0.0]
    assert gradient_norms([], torch.ones(9)) == []


def test_gradient_norms_leave_parameters_and_input_alone_and_work_without_grad_mode():
    layer, x = nn.Linear(3, 3), torch.ones(2, 3)
    with torch.no_grad():
        assert gradient_norms([layer], x)[0] > 0
    assert layer.weight.grad is None
    assert not x.requires_grad
