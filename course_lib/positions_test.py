"""Waves against plain loops and their identities, the table against indexing, squeezed positions by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.positions import (
    LearnedPositions,
    frequencies,
    interpolate_positions,
    shift_matrix,
    sinusoidal_encoding,
    wavelengths,
)

EXACT = 1e-12  # rounding of float64
FAR = 1e-9  # rounding of angles in the thousands
bases = st.sampled_from([10.0, 100.0, 10_000.0, 500_000.0])


def encoding_by_loops(length, d_model, base):
    return [
        [
            (math.sin if column % 2 == 0 else math.cos)(position / base ** (2 * (column // 2) / d_model))
            for column in range(d_model)
        ]
        for position in range(length)
    ]


@given(st.integers(1, 9), st.integers(1, 6), bases)
def test_encoding_equals_the_formula_in_plain_loops(length, pairs, base):
    encoding = sinusoidal_encoding(length, 2 * pairs, base)
    assert encoding.dtype == np.float64
    np.testing.assert_allclose(encoding, encoding_by_loops(length, 2 * pairs, base), atol=EXACT)


def test_encoding_of_four_columns_by_hand():
    rows = sinusoidal_encoding(2, 4)
    np.testing.assert_allclose(rows[0], [0, 1, 0, 1])
    np.testing.assert_allclose(rows[1], [0.8414709848, 0.5403023059, 0.0099998333, 0.9999500004], atol=1e-10)


@given(st.integers(1, 6), bases)
def test_all_encodings_have_the_same_length_and_products_depend_on_the_offset_alone(pairs, base):
    encoding = sinusoidal_encoding(20, 2 * pairs, base)
    products = encoding @ encoding.T
    np.testing.assert_allclose(np.diagonal(products), pairs, atol=FAR)
    for offset in (1, 5):
        along = np.diagonal(products, offset)
        np.testing.assert_allclose(along, along[0], atol=FAR)


def test_inverted_frequencies_keep_every_invariant_and_only_values_tell():
    angles = np.arange(20)[:, None] / frequencies(8)
    inverted = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(20, 8)
    products = inverted @ inverted.T
    np.testing.assert_allclose(np.diagonal(products), 4, atol=FAR)
    np.testing.assert_allclose(np.diagonal(products, 3), products[0, 3], atol=FAR)
    assert not np.allclose(inverted, sinusoidal_encoding(20, 8))


def test_wavelengths_run_from_two_pi_to_short_of_two_pi_times_the_base():
    lengths = wavelengths(512)
    assert len(lengths) == 256
    assert lengths[0] == pytest.approx(2 * math.pi)
    assert lengths[-1] == pytest.approx(60_611, abs=1)
    assert lengths[-1] < 2 * math.pi * 10_000
    np.testing.assert_allclose(lengths[1:] / lengths[:-1], lengths[1] / lengths[0])


@given(st.integers(-40, 40), st.integers(1, 5), bases)
def test_shift_matrix_moves_every_position(offset, pairs, base):
    encoding = sinusoidal_encoding(100, 2 * pairs, base)
    matrix = shift_matrix(offset, 2 * pairs, base)
    start = np.arange(40, 60)
    np.testing.assert_allclose(encoding[start] @ matrix, encoding[start + offset], atol=FAR)


def test_shift_matrices_are_rotations_that_add_up():
    three, five = shift_matrix(3, 6), shift_matrix(5, 6)
    np.testing.assert_allclose(three @ five, shift_matrix(8, 6), atol=EXACT)
    np.testing.assert_allclose(three.T, shift_matrix(-3, 6), atol=EXACT)
    np.testing.assert_allclose(three @ three.T, np.eye(6), atol=EXACT)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sinusoidal_encoding(4, 5), "`d_model` must be even .* got 5"),
        (lambda: sinusoidal_encoding(4, 0), "`d_model` must be even .* got 0"),
        (lambda: sinusoidal_encoding(-1, 4), "`length` must not be negative, got -1"),
        (lambda: sinusoidal_encoding(4, 4, base=0.0), "`base` must be above 0"),
        (lambda: shift_matrix(1, 3), "`d_model` must be even"),
        (lambda: wavelengths(7), "`d_model` must be even"),
        (lambda: interpolate_positions(0, 4), "`length` must be at least 1"),
        (lambda: interpolate_positions(4, 0), "`trained_length` must be at least 1"),
    ],
)
def test_a_bad_argument_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_learned_positions_add_one_row_of_the_table_per_position(dtype):
    torch.manual_seed(0)
    layer = LearnedPositions(7, 4).to(dtype)
    x = torch.randn(3, 5, 4, dtype=dtype)
    torch.testing.assert_close(layer(x), x + layer.table.weight[:5])


def test_only_the_positions_of_the_text_get_a_gradient():
    layer = LearnedPositions(7, 4)
    layer(torch.randn(3, 5, 4)).sum().backward()
    grad = layer.table.weight.grad
    torch.testing.assert_close(grad, torch.cat([torch.full((5, 4), 3.0), torch.zeros(2, 4)]))


def test_a_text_longer_than_the_table_is_refused_with_both_lengths():
    with pytest.raises(ValueError, match=r"8 positions, but the table ends at 7"):
        LearnedPositions(7, 4)(torch.zeros(1, 8, 4))


def test_positions_that_fit_stay_and_others_are_squeezed_into_the_trained_range():
    torch.testing.assert_close(interpolate_positions(4, 6), torch.tensor([0.0, 1.0, 2.0, 3.0]))
    torch.testing.assert_close(interpolate_positions(4, 4), torch.tensor([0.0, 1.0, 2.0, 3.0]))
    torch.testing.assert_close(interpolate_positions(6, 3), torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 2.5]))
    squeezed = interpolate_positions(96, 24)
    assert squeezed.dtype == torch.float32
    assert squeezed.max() < 24
