"""Rotary positions against multiplication of complex numbers, and by what a rotation keeps."""

import jaxtyping
import pytest
import torch

from course_lib.positions import interpolate_positions, sinusoidal_encoding
from course_lib.rotary import apply_rotary, apply_rotary_half_split, from_half_split, to_half_split

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)
PLACES = torch.tensor([0, 1, 2, 3, 7, 1000])  # with gaps


def draw(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def turned_as_complex_numbers(x, positions, base):
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    count = pairs.shape[-1]
    angles = positions.double()[:, None] / base ** (torch.arange(count).double() / count)
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2).to(x.dtype)


def assert_close(got, expected, dtype):
    torch.testing.assert_close(got, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@DTYPES
@pytest.mark.parametrize("base", [10_000.0, 100.0])
@pytest.mark.parametrize("shape", [(6, 8), (2, 3, 6, 10)])
def test_rotary_equals_multiplying_by_complex_numbers_of_length_one(dtype, base, shape):
    x = draw(*shape, dtype=dtype)
    got = apply_rotary(x, PLACES, base)
    assert got.dtype == dtype
    assert_close(got, turned_as_complex_numbers(x, PLACES, base), dtype)


def test_a_pair_by_hand():
    turned = apply_rotary(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
    torch.testing.assert_close(turned, torch.tensor([[0.5403023, 0.8414710]]))


def test_lengths_stay_and_scores_depend_on_the_distance_alone():
    query, key = draw(6, 8), draw(6, 8, seed=1)
    torch.testing.assert_close(apply_rotary(query, PLACES).norm(dim=-1), query.norm(dim=-1))
    scores, shifted = (
        apply_rotary(query, places) @ apply_rotary(key, places).mT for places in (PLACES, PLACES + 50_000)
    )
    torch.testing.assert_close(scores, shifted, rtol=1e-9, atol=1e-9)
    assert not torch.allclose(scores, query @ key.mT)


def test_rotary_of_the_vector_zero_one_is_the_sinusoidal_encoding():
    ones = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(5, 4)
    turned = apply_rotary(ones, -torch.arange(5))
    torch.testing.assert_close(turned, torch.from_numpy(sinusoidal_encoding(5, 8)))


def test_fractional_positions_lie_between_whole_ones():
    x = draw(8, 6)
    squeezed = apply_rotary(x, interpolate_positions(8, 4))
    torch.testing.assert_close(squeezed[2], apply_rotary(x[2:3], torch.tensor([1]))[0])
    torch.testing.assert_close(squeezed, turned_as_complex_numbers(x, torch.arange(8) / 2, 10_000.0))


@DTYPES
def test_the_half_split_layout_is_the_same_rotation_of_permuted_features(dtype):
    x = draw(2, 6, 8, dtype=dtype)
    neighbors = apply_rotary(x, PLACES)
    assert_close(from_half_split(apply_rotary_half_split(to_half_split(x), PLACES)), neighbors, dtype)
    assert not torch.allclose(apply_rotary_half_split(x, PLACES), neighbors)


def test_half_split_puts_even_columns_first_and_back():
    x = torch.arange(8.0)
    torch.testing.assert_close(to_half_split(x), torch.tensor([0.0, 2, 4, 6, 1, 3, 5, 7]))
    torch.testing.assert_close(from_half_split(to_half_split(x)), x)


def test_half_precision_keeps_late_positions_apart():
    x = draw(2, 8).to(torch.bfloat16)
    places = torch.tensor([999, 1000])
    half = apply_rotary(x, places)
    assert half.dtype == torch.bfloat16
    exact = turned_as_complex_numbers(x.double(), places, 10_000.0)
    torch.testing.assert_close(half.double(), exact, rtol=1e-2, atol=1e-2)


def test_the_gradient_is_the_rotation_backward():
    x = draw(2, 6, 8).requires_grad_()
    assert torch.autograd.gradcheck(lambda value: apply_rotary(value, PLACES), (x,))
    assert torch.autograd.gradcheck(lambda value: apply_rotary_half_split(value, PLACES), (x,))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: apply_rotary(draw(6, 7), PLACES), "must be even .* got 7"),
        (lambda: to_half_split(draw(7)), "must be even .* got 7"),
        (lambda: from_half_split(draw(7)), "must be even .* got 7"),
        (lambda: apply_rotary(draw(5, 8), PLACES), r"one position for each of the 5 tokens, got shape \(6,\)"),
        (lambda: apply_rotary(draw(6, 8), torch.tensor([3])), r"one position for each of the 6 tokens"),
    ],
)
def test_a_bad_argument_is_named(call, words, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=words):
        call()
