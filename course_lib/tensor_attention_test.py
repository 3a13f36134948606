"""Attention on tensors against the framework's, at its edges, and with wrong arguments."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import jaxtyping
import pytest
import torch
import torch.nn.functional as F

from course_lib.tensor_attention import require_mask, tensor_attention

TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 4e-3, torch.float32: 2e-6, torch.float64: 1e-12}
EVERY_DTYPE = pytest.mark.parametrize("dtype", TOLERANCE)


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def draw(dtype=torch.float64, batch=(2, 3), seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((*batch, 4, 5), (*batch, 7, 5), (*batch, 7, 6))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def draw_mask(*shape):
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < 0.4
    mask[..., 0] = False
    return mask


@EVERY_DTYPE
def test_the_output_equals_the_frameworks_in_every_dtype(dtype):
    query, key, value = draw(dtype)
    mask = draw_mask(2, 3, 4, 7)
    output, weights = tensor_attention(query, key, value, mask)
    exact = [tensor.double() for tensor in (query, key, value)]
    wanted = F.scaled_dot_product_attention(*exact, attn_mask=~mask)
    assert output.dtype == weights.dtype == dtype
    torch.testing.assert_close(output.double(), wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_gradients_equal_the_frameworks():
    ours, theirs = ([tensor.requires_grad_() for tensor in draw()] for _ in range(2))
    mask = draw_mask(4, 7)
    tensor_attention(*ours, mask)[0].square().sum().backward()
    F.scaled_dot_product_attention(*theirs, attn_mask=~mask).square().sum().backward()
    for mine, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, wanted.grad, rtol=1e-10, atol=1e-12)


def test_weights_of_every_query_sum_to_one_and_hidden_keys_have_none():
    mask = draw_mask(2, 1, 4, 7)
    _, weights = tensor_attention(*draw(), mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 4, dtype=torch.float64))
    assert (weights[mask.expand_as(weights)] == 0).all()


def test_a_query_that_sees_nothing_gets_zeros_and_no_gradient():
    query, key, value = (tensor.requires_grad_() for tensor in draw())
    mask = draw_mask(4, 7)
    mask[2] = True
    output, weights = tensor_attention(query, key, value, mask)
    output.sum().backward()
    assert (output[..., 2, :] == 0).all()
    assert (weights[..., 2, :] == 0).all()
    assert (query.grad[..., 2, :] == 0).all()
    assert all(tensor.grad.isfinite().all() for tensor in (query, key, value))


def test_half_precision_does_not_overflow_in_the_scores():
    query, key = torch.full((1, 8), 200.0, dtype=torch.float16), torch.full((3, 8), 200.0, dtype=torch.float16)
    output, _ = tensor_attention(query, key, torch.ones(3, 2, dtype=torch.float16))
    assert output.isfinite().all()


@pytest.mark.parametrize("mask", [torch.zeros(4, 7), torch.zeros(4, 7, dtype=torch.int64), [[True]], 0])
def test_a_mask_that_is_not_boolean_is_refused(mask, unchecked_annotations):
    with pytest.raises(TypeError, match="`mask` must be a boolean tensor"):
        tensor_attention(*draw(), mask)


@pytest.mark.parametrize("shape", [(7, 4), (4, 6), (3, 2, 4, 7), (9, 2, 3, 4, 7)])
def test_a_mask_that_does_not_fit_is_refused_with_both_shapes(shape):
    with pytest.raises(ValueError, match=r"does not broadcast .* \(2, 3, 4, 7\)"):
        require_mask(torch.zeros(shape, dtype=torch.bool), (2, 3, 4, 7))


def test_widths_and_lengths_that_differ_are_refused(unchecked_annotations):
    query, key, value = draw()
    with pytest.raises(ValueError, match=r"`query` .* and `key` .* along axis -1"):
        tensor_attention(query[..., :3], key, value)
    with pytest.raises(ValueError, match=r"`value` .* and `key` .* along axis -2"):
        tensor_attention(query, key, value[..., :3, :])
