"""Random features against the exponential they estimate, and Performer's attention against softmax attention."""

import math

import jaxtyping
import pytest
import torch

from course_lib.efficient.performer import (
    gaussian_projection,
    orthogonal_projection,
    performer_attention,
    performer_features,
    trigonometric_features,
)
from course_lib.masks import causal_mask
from course_lib.memory import allocated_shapes
from course_lib.tensor_attention import tensor_attention

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
STANDARD_ERRORS = 5  # a right mean is further off less than once in a million draws
MANY = 200_000


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=0, scale=1.0, dtype=torch.float64):
    return scale * torch.randn(*shape, generator=generator(seed + sum(shape)), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_features_are_the_formula(dtype):
    x, projection = draw(2, 3, 4, dtype=dtype), draw(4, 7, seed=5, dtype=dtype)
    got = performer_features(x, projection)
    assert got.dtype == dtype
    for batch in range(2):
        for token in range(3):
            vector = x[batch, token].double()
            wanted = [math.exp(vector @ w - vector @ vector / 2) / math.sqrt(7) for w in projection.double().T]
            torch.testing.assert_close(
                got[batch, token].double(),
                torch.tensor(wanted, dtype=torch.float64),
                rtol=TOLERANCE[dtype],
                atol=TOLERANCE[dtype],
            )


@pytest.mark.parametrize("features", [performer_features, trigonometric_features])
@pytest.mark.parametrize("projection", [gaussian_projection, orthogonal_projection])
def test_products_of_features_estimate_the_exponential_without_bias(features, projection):
    query, key = draw(4, seed=1, scale=0.5), draw(4, seed=2, scale=0.5)
    w = projection(4, MANY, generator(3), torch.float64)
    terms = MANY * features(query, w) * features(key, w)
    if features is trigonometric_features:  # a direction's cosine and sine belong together
        terms = terms[:MANY] + terms[MANY:]
    error = terms.std() / math.sqrt(MANY)
    assert abs(terms.mean() - math.exp(query @ key)) < STANDARD_ERRORS * error


def test_positive_features_are_positive_and_trigonometric_ones_are_not():
    x, w = draw(50, 6), gaussian_projection(6, 16, generator(), torch.float64)
    assert (performer_features(x, w) > 0).all()
    table = trigonometric_features(x, w) @ trigonometric_features(x, w).mT
    assert (table < 0).any()


def test_orthogonal_directions_are_orthogonal_within_their_group_and_as_long_as_normal_ones():
    w = orthogonal_projection(5, 13, generator(), torch.float64)
    assert w.shape == (5, 13)
    for start in (0, 5, 10):
        group = w[:, start : start + 5]
        products = group.T @ group
        off_diagonal = products - products.diag().diag()
        assert off_diagonal.abs().max() < TOLERANCE[torch.float64]
    lengths = orthogonal_projection(5, 20_000, generator(), torch.float64).square().sum(0)
    # The squared length of a normal vector in 5 dimensions has mean 5 and variance 10.
    assert abs(lengths.mean() - 5) < STANDARD_ERRORS * math.sqrt(10 / 20_000)
    assert lengths.var().item() == pytest.approx(10, rel=0.1)


def test_orthogonal_directions_estimate_better_than_independent_ones():
    query, key = draw(8, seed=1, scale=0.6), draw(8, seed=2, scale=0.6)
    errors = {}
    for projection in (gaussian_projection, orthogonal_projection):
        source = generator(4)
        estimates = []
        for _ in range(2000):
            w = projection(8, 8, source, torch.float64)
            estimates.append(performer_features(query, w) @ performer_features(key, w))
        errors[projection] = (torch.stack(estimates) - math.exp(query @ key)).square().mean()
    assert errors[orthogonal_projection] < 0.8 * errors[gaussian_projection]


def test_attention_comes_close_to_softmax_and_closer_with_more_features():
    query, key, value = (draw(2, 12, 8, seed=i, scale=0.5) for i in range(3))
    wanted = tensor_attention(query, key, value)[0]
    errors = [
        (performer_attention(query, key, value, orthogonal_projection(8, m, generator(), torch.float64)) - wanted)
        .norm()
        .item()
        for m in (16, 4096)
    ]
    assert errors[1] < errors[0] / 5
    assert errors[1] < 0.07 * wanted.norm()


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_the_quotient_of_its_features_without_any_maximum_subtracted(causal):
    query, key, value = draw(2, 9, 4), draw(2, 9, 4, seed=1), draw(2, 9, 5)
    w = gaussian_projection(4, 11, generator(), torch.float64)
    table = performer_features(query / 4**0.25, w) @ performer_features(key / 4**0.25, w).mT
    if causal:
        table = table.masked_fill(causal_mask(9), 0)
    wanted = table / table.sum(-1, keepdim=True) @ value
    got = performer_attention(query, key, value, w, causal)
    torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-12)


def test_long_vectors_do_not_overflow_and_no_table_is_allocated():
    query, key, value = (draw(2, 33, 8, seed=i, scale=20, dtype=torch.float32) for i in range(3))
    w = gaussian_projection(8, 16, generator())
    assert performer_attention(query, key, value, w).isfinite().all()
    shapes = allocated_shapes(performer_attention, query, key, value, w, views=True)
    assert (33, 33) not in {shape[-2:] for shape in shapes}


def test_a_projection_for_another_width_is_refused(unchecked_annotations):
    with pytest.raises(ValueError, match=r"`projection` \(3, 7\) must have as many rows as `x` \(2, 4\)"):
        performer_features(draw(2, 4), draw(3, 7))
