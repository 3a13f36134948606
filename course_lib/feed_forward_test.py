"""Activations against math.erf, the network against loops and a convolution, counts against real modules."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import math

import jaxtyping
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from course_lib.feed_forward import (
    FeedForward,
    GatedFeedForward,
    feed_forward_cost,
    gelu,
    gelu_tanh,
    matched_hidden_size,
    position_wise_ffn,
    relu,
    swiglu,
    xavier_uniform_bound,
)

BATCH, SEQUENCE, D_MODEL, D_FF = 2, 4, 5, 12
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12, torch.float32: 1e-5, torch.float64: 1e-12}
TANH_ERROR = 4.74e-4  # the largest distance of the two forms, near ±2.7
NUMPY_DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
TORCH_DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
SIZES = st.integers(1, 12)


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def weights(seed=1):
    shapes = ((D_MODEL, D_FF), (D_FF,), (D_FF, D_MODEL), (D_MODEL,))
    return [drawn(*shape, seed=seed + i) for i, shape in enumerate(shapes)]


def tensor(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@NUMPY_DTYPES
def test_gelu_is_x_times_the_normal_share_below_x(dtype):
    x = np.linspace(-6, 6, 49, dtype=dtype)
    expected = [float(v) * 0.5 * (1 + math.erf(float(v) / math.sqrt(2))) for v in x]
    found = gelu(x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_gelu_keeps_its_digits_far_to_the_left():
    expected = -10 * 0.5 * math.erfc(10 / math.sqrt(2))
    np.testing.assert_allclose(gelu(np.array([-10.0])), [expected], rtol=1e-12)


def test_gelu_leaves_any_layout_and_a_single_number_in_shape():
    x = drawn(3, 4)
    np.testing.assert_array_equal(gelu(x[::-1].T), gelu(x)[::-1].T)
    assert gelu(np.array(1.0)).shape == ()
    assert gelu(np.array([1, 2])).dtype == np.float64


def test_the_tanh_form_of_gelu_equals_the_frameworks_and_lies_near_the_exact_one():
    x = np.linspace(-8, 8, 4001)
    np.testing.assert_allclose(
        gelu_tanh(x), F.gelu(torch.from_numpy(x), approximate="tanh").numpy(), rtol=1e-12, atol=1e-15
    )
    assert np.abs(gelu_tanh(x) - gelu(x)).max() < TANH_ERROR


def test_relu_keeps_the_positive_part():
    np.testing.assert_array_equal(relu(np.array([-2.0, 0.0, 3.0])), [0.0, 0.0, 3.0])


@NUMPY_DTYPES
def test_the_network_equals_a_loop_over_tokens_and_units(dtype):
    x, (w_1, b_1, w_2, b_2) = drawn(SEQUENCE, D_MODEL), weights()
    expected = np.tile(b_2, (SEQUENCE, 1))
    for token in range(SEQUENCE):
        for unit in range(D_FF):
            expected[token] += max(0.0, x[token] @ w_1[:, unit] + b_1[unit]) * w_2[unit]
    found = position_wise_ffn(*(array.astype(dtype) for array in (x, w_1, b_1, w_2, b_2)), relu)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE[dtype], atol=10 * TOLERANCE[dtype])


def test_the_network_takes_any_leading_axes():
    x = drawn(BATCH, 3, SEQUENCE, D_MODEL)
    whole = position_wise_ffn(x, *weights(), np.tanh)
    np.testing.assert_allclose(whole[1, 2, 3], position_wise_ffn(x[1, 2, 3], *weights(), np.tanh), rtol=1e-12)


def test_reordered_tokens_give_reordered_outputs_and_no_token_feels_another():
    x, order = drawn(SEQUENCE, D_MODEL), [2, 0, 3, 1]
    found = position_wise_ffn(x, *weights(), gelu)
    np.testing.assert_allclose(position_wise_ffn(x[order], *weights(), gelu), found[order], rtol=1e-12)
    changed = x.copy()
    changed[0] += 1
    np.testing.assert_array_equal(position_wise_ffn(changed, *weights(), gelu)[1:], found[1:])


def test_widths_that_do_not_fit_are_named(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # the function's own message is tested
    w_1, b_1, w_2, b_2 = weights()
    x = drawn(SEQUENCE, D_FF)
    with pytest.raises(ValueError, match="`x` has 12 along axis -1 and `w_1` has 5"):
        position_wise_ffn(x, w_1, b_1, w_2, b_2, relu)


def test_the_bound_gives_glorots_variance():
    bound = xavier_uniform_bound(30, 70)
    assert bound**2 / 3 == pytest.approx(2 / (30 + 70))
    weight = torch.empty(70, 30)
    nn.init.xavier_uniform_(weight, gain=1.7, generator=torch.Generator().manual_seed(0))
    assert weight.abs().max() == pytest.approx(xavier_uniform_bound(30, 70, 1.7), rel=0.01)
    assert weight.abs().max() <= xavier_uniform_bound(30, 70, 1.7)


@TORCH_DTYPES
@pytest.mark.parametrize(("name", "activation"), [("relu", relu), ("gelu", gelu)])
def test_the_module_equals_the_function_on_arrays(dtype, name, activation):
    torch.manual_seed(0)
    ffn, x = FeedForward(D_MODEL, D_FF, name).to(dtype), tensor(BATCH, SEQUENCE, D_MODEL, dtype=dtype)
    arrays = [
        array.detach().numpy() for linear in (ffn.linear_1, ffn.linear_2) for array in (linear.weight.T, linear.bias)
    ]
    expected = position_wise_ffn(x.numpy(), *arrays, activation)
    np.testing.assert_allclose(ffn(x).detach(), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_the_module_equals_two_convolutions_of_width_one():
    ffn, x = FeedForward(D_MODEL, D_FF).double(), tensor(BATCH, SEQUENCE, D_MODEL)
    channels = F.conv1d(x.mT, ffn.linear_1.weight[..., None], ffn.linear_1.bias)
    channels = F.conv1d(F.gelu(channels), ffn.linear_2.weight[..., None], ffn.linear_2.bias)
    torch.testing.assert_close(ffn(x), channels.mT)


def test_gelu_is_the_modules_default_and_other_names_are_refused():
    assert FeedForward(D_MODEL, D_FF).activation == "gelu"
    with pytest.raises(ValueError, match="`activation` must be one of 'relu', 'gelu', got 'swish'"):
        FeedForward(D_MODEL, D_FF, "swish")


@TORCH_DTYPES
def test_swiglu_equals_its_formula_in_value_and_gradient(dtype):
    x = tensor(BATCH, SEQUENCE, D_MODEL, dtype=dtype)
    matrices = [tensor(*shape, dtype=dtype, seed=i) for i, shape in enumerate([(5, 7), (5, 7), (7, 5)], start=1)]
    inputs = [array.requires_grad_() for array in (x, *matrices)]
    x, w_gate, w_up, w_down = inputs
    gate = torch.einsum("bnd,df->bnf", x, w_gate)
    expected = torch.einsum(
        "bnf,bnf,fd->bnd", gate / (1 + torch.exp(-gate)), torch.einsum("bnd,df->bnf", x, w_up), w_down
    )
    torch.testing.assert_close(swiglu(*inputs), expected)
    pairs = zip(
        torch.autograd.grad(swiglu(*inputs).square().sum(), inputs),
        torch.autograd.grad(expected.square().sum(), inputs),
        strict=True,
    )
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs)


def test_the_gated_module_holds_the_matrices_of_swiglu():
    module, x = GatedFeedForward(D_MODEL, 7).double(), tensor(BATCH, SEQUENCE, D_MODEL)
    torch.testing.assert_close(module(x), swiglu(x, module.gate.weight.T, module.up.weight.T, module.down.weight.T))
    assert sum(weight.numel() for weight in module.parameters()) == 3 * D_MODEL * 7


@given(SIZES, SIZES, SIZES)
def test_the_matched_size_is_the_least_multiple_with_enough_weights(d_model, d_ff, multiple_of):
    found = matched_hidden_size(d_model, d_ff, multiple_of)
    enough = [h for h in range(0, found + 1, multiple_of) if 3 * d_model * h >= 2 * d_model * d_ff]
    assert enough == [found]


def test_the_matched_size_is_that_of_published_models():
    assert matched_hidden_size(4096, 4 * 4096, 256) == 11008  # LLaMA 7B
    assert matched_hidden_size(768, 3072) == 2048  # T5 base with a gated network


@pytest.mark.parametrize(("sequence", "d_model", "d_ff"), [(1, 1, 1), (7, 5, 12), (3, 12, 5)])
def test_the_cost_equals_a_real_modules(sequence, d_model, d_ff):
    ffn = FeedForward(d_model, d_ff).to("meta")
    with FlopCounterMode(display=False) as counter:
        ffn(torch.empty(sequence, d_model, device="meta"))
    parameters = sum(weight.numel() for weight in ffn.parameters())
    assert feed_forward_cost(sequence, d_model, d_ff) == (parameters, counter.get_total_flops())


@pytest.mark.parametrize("count", [xavier_uniform_bound, matched_hidden_size])
def test_sizes_below_one_are_refused_by_name(count):
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        count(0, 3)


def test_a_cost_of_nothing_is_refused():
    with pytest.raises(ValueError, match="`sequence` must be at least 1, got 0"):
        feed_forward_cost(0, 3, 4)
