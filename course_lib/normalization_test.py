"""Norms against PyTorch's own, against plain loops, by properties, and at their edges."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import jaxtyping
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from course_lib.normalization import (
    AXES,
    DEFAULT_EPS,
    layer_norm,
    layer_norm_backward,
    normalization_axes,
    rms_norm,
    standardize,
)

TOLERANCE = {np.float16: 4e-3, np.float32: 3e-6, np.float64: 1e-11}
PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
ALL_DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)
SCALES = pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def draw(*shapes, dtype=np.float64, seed=0, scale=1.7):
    generator = np.random.default_rng(seed)
    return [generator.normal(0.8, 1.0, shape).astype(dtype) * dtype(scale) for shape in shapes]


def tensors(*arrays):
    return [torch.from_numpy(array).requires_grad_() for array in arrays]


def assert_close(got, expected, dtype):
    assert got.dtype == dtype
    expected = expected.detach().numpy() if isinstance(expected, torch.Tensor) else np.asarray(expected)
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(got, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)


@ALL_DTYPES
@SCALES
def test_layer_norm_equals_the_framework(dtype, scale):
    if dtype is np.float16 and scale != 1:
        scale = 30.0  # float16 ends at 65504 and has few digits below 1e-4
    (x,) = draw((2, 3, 5), dtype=dtype, scale=scale)
    gain, bias = draw((5,), (5,), dtype=dtype, seed=1)
    assert_close(layer_norm(x, gain, bias), F.layer_norm(torch.from_numpy(x), (5,), *tensors(gain, bias)), dtype)


@ALL_DTYPES
@SCALES
def test_rms_norm_equals_the_framework(dtype, scale):
    if dtype is np.float16 and scale != 1:
        scale = 30.0
    (x,) = draw((2, 3, 5), dtype=dtype, scale=scale)
    (gain,) = draw((5,), dtype=dtype, seed=1)
    expected = F.rms_norm(torch.from_numpy(x), (5,), *tensors(gain), eps=DEFAULT_EPS)
    assert_close(rms_norm(x, gain), expected, dtype)


def test_norms_equal_a_loop_over_tokens():
    (x,) = draw((2, 3, 5))
    gain, bias = draw((5,), (5,), seed=1)
    normed, rms = layer_norm(x, gain, bias, eps=0.5), rms_norm(x, gain, eps=0.5)
    for place in np.ndindex(2, 3):
        row = [float(number) for number in x[place]]
        mean = sum(row) / 5
        variance = sum((number - mean) ** 2 for number in row) / 5
        square = sum(number**2 for number in row) / 5
        for j, number in enumerate(row):
            assert normed[(*place, j)] == pytest.approx(gain[j] * (number - mean) / (variance + 0.5) ** 0.5 + bias[j])
            assert rms[(*place, j)] == pytest.approx(gain[j] * number / (square + 0.5) ** 0.5)


def test_square_in_half_precision_does_not_overflow():
    x = np.full((1, 4), 300, dtype=np.float16)
    assert_close(rms_norm(x, np.ones(4, np.float16)), np.ones((1, 4)), np.float16)


finite_rows = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(2, 6)), elements=st.floats(-1e3, 1e3))


@given(finite_rows)
def test_layer_norm_leaves_mean_zero_and_the_variance_that_eps_allows(x):
    normed = layer_norm(x, np.ones(x.shape[-1]), np.zeros(x.shape[-1]))
    np.testing.assert_allclose(normed.mean(-1), 0, atol=1e-9)
    variance = x.var(-1)
    np.testing.assert_allclose(normed.var(-1), variance / (variance + DEFAULT_EPS), atol=1e-9)


@given(finite_rows)
def test_rms_norm_of_centered_rows_is_layer_norm_without_bias(x):
    centered = x - x.mean(-1, keepdims=True)
    gain = np.arange(1.0, x.shape[-1] + 1)
    np.testing.assert_allclose(rms_norm(centered, gain), layer_norm(x, gain, np.zeros(x.shape[-1])), atol=1e-7)


def test_tokens_do_not_touch_each_other():
    (x,) = draw((2, 3, 5))
    changed = x.copy()
    changed[1, 2] += 7
    for norm in (lambda a: layer_norm(a, np.ones(5), np.zeros(5)), lambda a: rms_norm(a, np.ones(5))):
        moved = (norm(x) != norm(changed)).any(-1)
        assert np.argwhere(moved).tolist() == [[1, 2]]


def test_constant_row_gives_the_bias_and_for_rms_norm_the_gain():
    x, gain, bias = np.full((2, 4), 3.0), np.arange(4.0), np.arange(4.0) - 1
    np.testing.assert_array_equal(layer_norm(x, gain, bias), np.stack([bias, bias]))
    np.testing.assert_allclose(rms_norm(x, gain, eps=0.0), np.stack([gain, gain]))


@pytest.mark.parametrize("kind", AXES)
def test_axes_of_every_kind_equal_the_framework(kind):
    (x,) = draw((4, 3, 5))
    channels_first = torch.from_numpy(x).mT
    expected = {
        "batch": lambda: F.batch_norm(channels_first, None, None, training=True).mT,
        "layer": lambda: F.layer_norm(torch.from_numpy(x), (5,)),
        "instance": lambda: F.instance_norm(channels_first).mT,
    }[kind]()
    assert_close(standardize(x, normalization_axes(kind)), expected, np.float64)


@pytest.mark.parametrize("kind", ["group", "Batch", "", None, 3])
def test_unknown_kind_is_refused(kind, unchecked_annotations):
    with pytest.raises(ValueError, match="`kind` must be one of 'batch', 'layer', 'instance'"):
        normalization_axes(kind)


@PRECISIONS
@SCALES
def test_backward_equals_autograd(dtype, scale):
    (x,) = draw((2, 3, 5), dtype=dtype, scale=scale)
    gain, bias, grad_output = draw((5,), (5,), (2, 3, 5), dtype=dtype, seed=1)
    leaves = tensors(x, gain, bias)
    normed = F.layer_norm(leaves[0], (5,), leaves[1], leaves[2])
    expected = torch.autograd.grad(normed, leaves, torch.from_numpy(grad_output))
    for got, wanted in zip(layer_norm_backward(x, gain, grad_output), expected, strict=True):
        assert_close(got, wanted, dtype)


def test_backward_equals_finite_differences_with_a_large_eps():
    x, gain, bias, grad_output = draw((3, 4), (4,), (4,), (3, 4))
    step, eps = 1e-6, 0.3
    gradients = layer_norm_backward(x, gain, grad_output, eps)
    for array, gradient in zip((x, gain, bias), gradients, strict=True):
        for place in np.ndindex(array.shape):
            kept = array[place]
            ends = []
            for change in (step, -step):
                array[place] = kept + change
                ends.append((layer_norm(x, gain, bias, eps) * grad_output).sum())
            array[place] = kept
            assert gradient[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-7)


def test_backward_takes_out_mean_and_stretch():
    x, gain, grad_output = draw((6, 5), (5,), (6, 5))
    grad_x, _, _ = layer_norm_backward(x, gain, grad_output, eps=0.0)
    np.testing.assert_allclose(grad_x.sum(-1), 0, atol=1e-12)
    np.testing.assert_allclose((grad_x * x).sum(-1), 0, atol=1e-12)


def test_inputs_stay_as_they_were():
    arrays = draw((2, 3, 5), (5,), (5,), (2, 3, 5))
    copies = [array.copy() for array in arrays]
    x, gain, bias, grad_output = arrays
    layer_norm(x, gain, bias)
    rms_norm(x, gain)
    layer_norm_backward(x, gain, grad_output)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_integers_become_float64():
    assert layer_norm(np.array([[1, 2, 4]]), np.ones(3, int), np.zeros(3, int)).dtype == np.float64


@pytest.mark.parametrize("function", [layer_norm, layer_norm_backward])
def test_wrong_number_of_gains_is_refused(function, unchecked_annotations):
    x = np.ones((2, 3))
    arguments = (np.ones(2), np.zeros(3)) if function is layer_norm else (np.ones(2), x)
    with pytest.raises(ValueError, match=r"`gain` has shape \(2,\); it needs one number for each of the 3 features"):
        function(x, *arguments)


def test_other_bad_arguments_are_refused(unchecked_annotations):
    x, ones = np.ones((2, 3)), np.ones(3)
    with pytest.raises(ValueError, match="`eps` must be a finite number that is not negative, got -1"):
        rms_norm(x, ones, eps=-1)
    with pytest.raises(ValueError, match=r"`grad_output` has shape \(3,\); layer norm's output has \(2, 3\)"):
        layer_norm_backward(x, ones, ones)
    with pytest.raises(ValueError, match="`axes` names axis 2"):
        standardize(x, (2,))
    with pytest.raises(TypeError, match="`x` must hold real numbers, got None"):
        rms_norm(None, ones)
