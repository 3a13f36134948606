"""Heads against plain indexing, the layer against a loop over heads, and what must hold for any weights."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import math

import jaxtyping
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.multi_head import (
    MultiHeadAttention,
    attention_parameter_count,
    merge_heads,
    multi_head_attention,
    split_heads,
)

BATCH, HEADS, D_HEAD, N_Q, N_K = 2, 3, 5, 4, 7
D_MODEL = HEADS * D_HEAD
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
EVERY_DTYPE = pytest.mark.parametrize("dtype", TOLERANCE)


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def draw(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def layer(dtype=torch.float64, **options):
    torch.manual_seed(0)
    return MultiHeadAttention(D_MODEL, HEADS, **options).to(dtype)


def inputs(dtype=torch.float64):
    return [draw(BATCH, n, D_MODEL, dtype=dtype, seed=n) for n in (N_Q, N_K, N_K)]


def one_head_at_a_time(attention, query, key, value, mask=None):
    """Compute the layer with one loop over batch rows and one over heads, on plain slices."""
    outputs, weights = [], []
    for row in range(len(query)):
        found, maps = [], []
        for head in range(attention.num_heads):
            columns = slice(head * attention.d_head, (head + 1) * attention.d_head)
            q, k, v = (
                (x[row] @ linear.weight.T + linear.bias)[:, columns]
                for linear, x in ((attention.w_q, query), (attention.w_k, key), (attention.w_v, value))
            )
            scores = q @ k.T / math.sqrt(attention.d_head)
            if mask is not None:
                scores = torch.where(mask, -math.inf, scores)
            maps.append(scores.softmax(-1))
            found.append(maps[-1] @ v)
        outputs.append(torch.cat(found, -1) @ attention.w_o.weight.T + attention.w_o.bias)
        weights.append(torch.stack(maps))
    return torch.stack(outputs), torch.stack(weights)


def test_a_head_owns_neighboring_features_of_every_token():
    x = torch.arange(BATCH * N_Q * D_MODEL).reshape(BATCH, N_Q, D_MODEL).double()
    heads = split_heads(x, HEADS)
    assert heads.shape == (BATCH, HEADS, N_Q, D_HEAD)
    for head in range(HEADS):
        assert torch.equal(heads[:, head], x[:, :, head * D_HEAD : (head + 1) * D_HEAD])


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(1, 4))
def test_merging_undoes_splitting(batch, sequence, heads, d_head):
    x = draw(batch, sequence, heads * d_head)
    assert torch.equal(merge_heads(split_heads(x, heads)), x)


@pytest.mark.parametrize("num_heads", [4, 0, -3, 2 * D_MODEL])
def test_a_width_that_heads_do_not_divide_is_refused(num_heads):
    with pytest.raises(ValueError, match=f"`num_heads` must divide the width: {D_MODEL} features"):
        split_heads(draw(BATCH, N_Q, D_MODEL), num_heads)
    with pytest.raises(ValueError, match="`num_heads` must divide"):
        MultiHeadAttention(D_MODEL, num_heads)
    with pytest.raises(ValueError, match="`num_heads` must divide"):
        attention_parameter_count(D_MODEL, num_heads)


@EVERY_DTYPE
def test_the_layer_equals_a_loop_over_heads(dtype):
    attention, mask = layer(dtype), torch.zeros(N_Q, N_K, dtype=torch.bool).bernoulli_(0.3)
    mask[:, 0] = False
    output, weights = attention(*inputs(dtype), mask)
    wanted_output, wanted_weights = one_head_at_a_time(attention, *inputs(dtype), mask)
    torch.testing.assert_close(output, wanted_output, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    torch.testing.assert_close(weights, wanted_weights, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_gradients_of_the_layer_equal_those_of_the_loop():
    attention = layer()
    parameters = list(attention.parameters())
    ours = torch.autograd.grad(attention(*inputs())[0].square().sum(), parameters)
    wanted = torch.autograd.grad(one_head_at_a_time(attention, *inputs())[0].square().sum(), parameters)
    for mine, theirs in zip(ours, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)


def test_reordered_tokens_give_reordered_outputs():
    attention, x = layer(), draw(BATCH, N_Q, D_MODEL)
    order = torch.tensor([2, 0, 3, 1])
    moved = x[:, order]
    torch.testing.assert_close(attention(moved, moved, moved)[0], attention(x, x, x)[0][:, order])


def test_a_batch_row_has_no_influence_on_another():
    attention, x = layer(), draw(BATCH, N_Q, D_MODEL)
    changed = x.clone()
    changed[1] += 1
    assert torch.equal(attention(changed, changed, changed)[0][0], attention(x, x, x)[0][0])


@pytest.mark.parametrize("shape", [(1, 1, N_Q, N_K), (BATCH, 1, N_Q, N_K), (1, HEADS, N_Q, N_K), (BATCH, 1, 1, N_K)])
def test_a_mask_of_four_axes_hides_per_batch_row_or_per_head(shape):
    mask = torch.zeros(shape, dtype=torch.bool)
    mask[..., 0] = True
    mask[0, 0, ..., 2] = True
    _, weights = layer()(*inputs(), mask)
    assert torch.equal(weights == 0, mask.expand_as(weights))


def test_a_query_that_sees_nothing_gives_the_outputs_bias():
    attention = layer()
    mask = torch.zeros(N_Q, N_K, dtype=torch.bool)
    mask[1] = True
    output, weights = attention(*inputs(), mask)
    assert (weights[:, :, 1] == 0).all()
    assert torch.equal(output[:, 1], attention.w_o.bias.expand(BATCH, -1))


@pytest.mark.parametrize("shape", [(N_K,), (BATCH, N_Q, N_K), (1, 1, 1, N_Q, N_K)])
def test_a_mask_of_another_number_of_axes_is_refused(shape):
    with pytest.raises(ValueError, match=r"`mask` must have 2 axes \(query, key\) or 4"):
        layer()(*inputs(), torch.zeros(shape, dtype=torch.bool))


def test_a_float_mask_is_refused(unchecked_annotations):
    with pytest.raises(TypeError, match="`mask` must be a boolean tensor"):
        layer()(*inputs(), torch.zeros(N_Q, N_K))


def test_the_function_equals_the_layer_without_biases():
    attention, x = layer(bias=False), draw(BATCH, N_Q, D_MODEL)
    matrices = [attention.get_submodule(name).weight.T for name in ("w_q", "w_k", "w_v", "w_o")]
    torch.testing.assert_close(multi_head_attention(x, *matrices, HEADS), attention(x, x, x)[0])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("num_heads", [1, 3, 5])
def test_the_count_equals_the_sum_over_a_real_layer(num_heads, bias):
    real = sum(weight.numel() for weight in MultiHeadAttention(D_MODEL, num_heads, bias).parameters())
    assert attention_parameter_count(D_MODEL, num_heads, bias) == real
