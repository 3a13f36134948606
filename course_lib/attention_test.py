"""Attention against PyTorch's own, by properties, and at its edges."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from course_lib.attention import (
    attention_backward,
    attention_scores,
    attention_with_temperature,
    expected_score_std,
    scaled_dot_product_attention,
    self_attention,
    softmax,
    softmax_jacobian,
)

TOLERANCE = {np.float16: 4e-3, np.float32: 2e-6, np.float64: 1e-12}
PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
ALL_DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)


def draw(*shapes, dtype=np.float64, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.normal(0.3, 1.7, shape).astype(dtype) for shape in shapes]


def draw_attention(dtype=np.float64, batch=(2, 3)):
    return draw((*batch, 4, 5), (*batch, 7, 5), (*batch, 7, 6), dtype=dtype)


def assert_close(got, expected, dtype):
    assert got.dtype == dtype
    np.testing.assert_allclose(got, np.asarray(expected), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


finite_scores = arrays(
    np.float64, st.tuples(st.integers(1, 3), st.integers(1, 6)), elements=st.floats(-1000, 1000, width=32)
)


@ALL_DTYPES
def test_softmax_equals_the_framework(dtype):
    (scores,) = draw((2, 3, 5), dtype=dtype)
    assert_close(softmax(scores), torch.softmax(torch.from_numpy(scores), -1), dtype)


@ALL_DTYPES
def test_softmax_is_stable_at_a_thousand(dtype):
    scores = np.array([[1000, 1000, -1000], [-1000, -1000, -1000]], dtype=dtype)
    assert_close(softmax(scores), [[1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]], dtype)


@ALL_DTYPES
def test_softmax_is_stable_at_the_ends_of_the_number_range(dtype):
    largest = np.finfo(dtype).max
    assert_close(softmax(np.array([largest, -largest, largest], dtype=dtype)), [1 / 2, 0, 1 / 2], dtype)


@ALL_DTYPES
def test_softmax_of_a_row_of_minus_infinity_is_zero(dtype):
    scores = np.array([[-np.inf, -np.inf], [-np.inf, 3]], dtype=dtype)
    assert_close(softmax(scores), [[0, 0], [0, 1]], dtype)


def test_softmax_keeps_not_a_number_visible_and_in_its_own_row():
    weights = softmax(np.array([[np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0]]))
    assert np.isnan(weights[:2]).all()
    np.testing.assert_array_equal(weights[2], [0.5, 0.5])


@given(finite_scores)
def test_softmax_rows_sum_to_one_and_keep_the_order_of_scores(scores):
    weights = softmax(scores)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=TOLERANCE[np.float64])
    order = np.argsort(scores, axis=-1)
    assert (np.diff(np.take_along_axis(weights, order, -1)) >= 0).all()


@given(finite_scores, st.floats(-1000, 1000))
def test_softmax_ignores_a_constant_added_to_a_row(scores, constant):
    rounding = 1e-9  # adding the constant itself rounds scores of about 1000
    np.testing.assert_allclose(softmax(scores + constant), softmax(scores), rtol=rounding, atol=rounding)


@PRECISIONS
def test_scores_are_dot_products_over_the_root_of_the_width(dtype):
    query, key, _ = draw_attention(dtype)
    expected = np.einsum("...qd,...kd->...qk", query.astype(np.float64), key.astype(np.float64)) / np.sqrt(5)
    assert_close(attention_scores(query, key), expected, dtype)


@ALL_DTYPES
def test_attention_equals_the_framework(dtype):
    query, key, value = draw_attention(dtype)
    output, weights = scaled_dot_product_attention(query, key, value)
    expected = F.scaled_dot_product_attention(*map(torch.from_numpy, (query, key, value)))
    assert_close(output, expected, dtype)
    assert weights.shape == (2, 3, 4, 7)


@PRECISIONS
@pytest.mark.parametrize("mask_shape", [(7,), (4, 7), (4, 1), (3, 1, 7), (2, 1, 4, 7)])
def test_masked_attention_equals_the_framework_with_the_opposite_mask(dtype, mask_shape):
    query, key, value = draw_attention(dtype)
    mask = np.random.default_rng(1).random(mask_shape) < 0.4
    hidden = np.broadcast_to(mask, (2, 3, 4, 7))
    output, weights = scaled_dot_product_attention(query, key, value, mask)
    expected = F.scaled_dot_product_attention(
        *map(torch.from_numpy, (query, key, value)), attn_mask=~torch.tensor(hidden)
    )
    assert_close(output, expected.nan_to_num(0), dtype)
    assert (weights[hidden] == 0).all()


@ALL_DTYPES
def test_a_query_that_sees_nothing_gets_zeros(dtype):
    query, key, value = draw_attention(dtype)
    mask = np.zeros((4, 7), dtype=bool)
    mask[2] = True
    output, weights = scaled_dot_product_attention(query, key, value, mask)
    assert (weights[..., 2, :] == 0).all()
    assert (output[..., 2, :] == 0).all()
    np.testing.assert_allclose(np.delete(weights, 2, -2).sum(-1), 1, rtol=TOLERANCE[dtype])


@given(st.integers(0, 2**32 - 1))
def test_a_hidden_key_has_no_influence(seed):
    query, key, value = draw((3, 4), (5, 4), (5, 2), seed=seed)
    mask = np.zeros(5, dtype=bool)
    mask[3] = True
    before, _ = scaled_dot_product_attention(query, key, value, mask)
    key[3], value[3] = 900, -900
    after, _ = scaled_dot_product_attention(query, key, value, mask)
    np.testing.assert_array_equal(before, after)


@given(st.permutations(range(5)))
def test_attention_does_not_care_about_the_order_of_keys(order):
    query, key, value = draw((3, 4), (5, 4), (5, 2))
    output, weights = scaled_dot_product_attention(query, key, value)
    shuffled_output, shuffled_weights = scaled_dot_product_attention(query, key[order], value[order])
    np.testing.assert_allclose(shuffled_output, output, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(shuffled_weights, weights[:, order], rtol=1e-12)


def test_half_precision_survives_scores_beyond_its_range():
    query = np.full((1, 64), 200, dtype=np.float16)
    key = np.stack([query[0], -query[0]])
    _, weights = scaled_dot_product_attention(query, key, np.ones((2, 3), dtype=np.float16))
    np.testing.assert_array_equal(weights, [[1, 0]])


def test_leading_axes_broadcast():
    query, key, value = draw((2, 1, 4, 5), (3, 7, 5), (3, 7, 6))
    output, _ = scaled_dot_product_attention(query, key, value)
    expected, _ = scaled_dot_product_attention(query[1, 0], key[2], value[2])
    np.testing.assert_allclose(output[1, 2], expected, rtol=1e-12)


def test_attention_over_no_keys_gives_zeros():
    output, weights = scaled_dot_product_attention(np.ones((2, 3)), np.ones((0, 3)), np.ones((0, 4)))
    np.testing.assert_array_equal(output, np.zeros((2, 4)))
    assert weights.shape == (2, 0)


@PRECISIONS
def test_self_attention_equals_projecting_and_then_attending(dtype):
    x, w_q, w_k, w_v = draw((2, 5, 6), (6, 3), (6, 3), (6, 4), dtype=dtype)
    output, weights = self_attention(x, w_q, w_k, w_v)
    tokens = torch.from_numpy(x)
    expected = F.scaled_dot_product_attention(*(tokens @ torch.from_numpy(w) for w in (w_q, w_k, w_v)))
    assert_close(output, expected, dtype)
    assert weights.shape == (2, 5, 5)


@PRECISIONS
def test_the_jacobian_equals_the_one_from_autograd(dtype):
    (scores,) = draw((6,), dtype=dtype)
    expected = torch.autograd.functional.jacobian(lambda row: torch.softmax(row, 0), torch.from_numpy(scores))
    assert_close(softmax_jacobian(softmax(scores)), expected, dtype)


@given(finite_scores)
def test_rows_of_the_jacobian_sum_to_zero(scores):
    jacobian = softmax_jacobian(softmax(scores))
    np.testing.assert_allclose(jacobian.sum(-1), 0, atol=1e-15)
    np.testing.assert_allclose(jacobian, np.swapaxes(jacobian, -1, -2), atol=1e-15)


def test_a_saturated_row_has_no_gradient():
    np.testing.assert_array_equal(softmax_jacobian(softmax(np.array([0.0, 900.0, -900.0]))), np.zeros((3, 3)))


@pytest.mark.parametrize("d_k", [4, 64, 1024])
@pytest.mark.parametrize("scaled", [False, True])
def test_expected_score_std_is_what_many_draws_show(d_k, scaled):
    generator = np.random.default_rng(2)
    query, key = generator.normal(size=(400, d_k)), generator.normal(size=(400, d_k))
    scores = attention_scores(query, key) * (1 if scaled else math.sqrt(d_k))
    sampling_error = 0.08  # of a standard deviation over 400 rows that share their keys
    assert scores.std() == pytest.approx(expected_score_std(d_k, scaled), rel=sampling_error)


@ALL_DTYPES
def test_temperature_one_is_plain_attention(dtype):
    query, key, value = draw_attention(dtype)
    output, weights = attention_with_temperature(query, key, value, 1.0)
    plain_output, plain_weights = scaled_dot_product_attention(query, key, value)
    assert_close(output, plain_output, dtype)
    assert_close(weights, plain_weights, dtype)


@PRECISIONS
def test_temperature_equals_a_smaller_query(dtype):
    query, key, value = draw_attention(dtype)
    output, _ = attention_with_temperature(query, key, value, 2.5)
    expected, _ = scaled_dot_product_attention(query / dtype(2.5), key, value)
    assert_close(output, expected, dtype)


@pytest.mark.parametrize("temperature", [5e-324, 1e-30, 1e-3])
@ALL_DTYPES
def test_a_temperature_near_zero_picks_the_best_key(dtype, temperature):
    query, key, value = draw((3, 4), (5, 4), (5, 2), dtype=dtype)
    _, weights = attention_with_temperature(query, key, value, temperature)
    best = attention_scores(query.astype(np.float64), key.astype(np.float64)).argmax(-1)
    np.testing.assert_array_equal(weights, np.eye(5)[best])


@pytest.mark.parametrize("temperature", [1e30, math.inf])
def test_a_huge_temperature_gives_equal_weights(temperature):
    query, key, value = draw((3, 4), (5, 4), (5, 2))
    _, weights = attention_with_temperature(query, key, value, temperature)
    np.testing.assert_allclose(weights, 1 / 5, rtol=1e-12)


@PRECISIONS
@pytest.mark.parametrize("shapes", [[(2, 3, 4), (2, 5, 4), (2, 5, 6)], [(2, 3, 4), (5, 4), (1, 5, 6)]])
def test_gradients_equal_those_of_autograd(dtype, shapes):
    query, key, value = draw(*shapes, dtype=dtype)
    (grad_output,) = draw((2, 3, 6), dtype=dtype, seed=1)
    tensors = [torch.from_numpy(array).requires_grad_() for array in (query, key, value)]
    scores = tensors[0] @ tensors[1].mT / math.sqrt(4)
    (torch.softmax(scores, -1) @ tensors[2]).backward(torch.from_numpy(grad_output))
    gradients = attention_backward(query, key, value, grad_output)
    rounding = 10 * TOLERANCE[dtype]  # a gradient sums over queries or keys as well
    for got, tensor in zip(gradients, tensors, strict=True):
        assert got.shape == tuple(tensor.shape)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, np.asarray(tensor.grad), rtol=rounding, atol=rounding)


@ALL_DTYPES
def test_inputs_are_left_as_they_were(dtype):
    query, key, value = draw_attention(dtype)
    (grad_output,) = draw((2, 3, 4, 6), dtype=dtype)
    mask = np.eye(4, 7, dtype=bool)
    inputs = [query, key, value, grad_output, mask]
    copies = [array.copy() for array in inputs]
    for array in inputs:
        array.setflags(write=False)
    scaled_dot_product_attention(query, key, value, mask)
    attention_with_temperature(query, key, value, 0.5)
    attention_backward(query, key, value, grad_output)
    for array, copy in zip(inputs, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_whole_numbers_count_as_double_precision():
    weights = softmax(np.array([0, 0, 0]))
    assert weights.dtype == np.float64
    np.testing.assert_allclose(weights, 1 / 3)
