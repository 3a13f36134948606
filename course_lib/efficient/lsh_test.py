"""Hashing against its definition, and Reformer's attention against a masked quadratic form."""

import jaxtyping
import pytest
import torch

from course_lib.efficient.lsh import lsh_attention, lsh_buckets, random_rotations, shared_attention
from course_lib.masks import causal_mask
from course_lib.memory import allocated_shapes

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
HALF_TOLERANCE = 2e-2


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def draw(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def rotations(rounds, d, buckets, seed=0):
    return random_rotations(rounds, d, buckets, torch.Generator().manual_seed(seed), torch.float64)


def test_each_token_goes_to_the_direction_or_opposite_that_is_nearest():
    x, r = draw(2, 40, 5), draw(5, 4)
    directions = torch.cat([r.T, -r.T])
    got = lsh_buckets(x, r)
    assert got.dtype == torch.int64
    for batch in range(2):
        for token in range(40):
            products = [(x[batch, token] @ direction).item() for direction in directions]
            assert got[batch, token] == products.index(max(products))


def test_only_the_direction_counts_and_opposites_land_half_the_buckets_away():
    x, r = draw(40, 5), draw(5, 4)
    assert torch.equal(lsh_buckets(3 * x, r), lsh_buckets(x, r))
    assert torch.equal(lsh_buckets(-x, r), (lsh_buckets(x, r) + 4) % 8)


def test_near_vectors_share_a_bucket_more_often_than_random_ones():
    x, r = draw(500, 16), rotations(1, 16, 8)[0]
    near, far = x + 0.1 * draw(500, 16, seed=1), draw(500, 16, seed=2)
    together = [(lsh_buckets(x, r) == lsh_buckets(other, r)).double().mean() for other in (near, far)]
    assert together[0] > 0.8
    assert together[1] < 0.3


def met_in_a_round(x, rotation, chunk_size):
    """Follow the definition pair by pair: same bucket, and the key in the query's chunk or the one before."""
    buckets = lsh_buckets(x, rotation).tolist()
    order = sorted(range(len(buckets)), key=lambda token: (buckets[token], token))
    chunk = {token: place // chunk_size for place, token in enumerate(order)}
    return torch.tensor(
        [
            [buckets[i] == buckets[j] and chunk[i] - chunk[j] in (0, 1) for j in range(len(buckets))]
            for i in range(len(buckets))
        ]
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("length", "chunk_size", "rounds"), [(12, 4, 1), (23, 4, 3), (23, 5, 4), (10, 16, 2)])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_attention_is_the_quadratic_form_over_pairs_that_met_in_some_round(length, chunk_size, rounds, causal, dtype):
    query_key, value = draw(2, length, 6, dtype=dtype), draw(2, length, 3, dtype=dtype)
    r = rotations(rounds, 6, 4).to(dtype)
    got = lsh_attention(query_key, value, r, chunk_size, causal)
    for batch in range(2):
        met = torch.stack([met_in_a_round(query_key[batch], one, chunk_size) for one in r]).any(0)
        hidden = ~met | causal_mask(length) if causal else ~met
        wanted = shared_attention(query_key[batch], value[batch], hidden)
        torch.testing.assert_close(got[batch], wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_one_bucket_for_all_is_the_full_attention():
    query_key, value = draw(3, 2, 8, 6).abs(), draw(3, 2, 8, 4)
    one_direction = torch.ones(1, 6, 1, dtype=torch.float64)
    got = lsh_attention(query_key, value, one_direction, chunk_size=8)
    torch.testing.assert_close(got, shared_attention(query_key, value))


def test_a_token_looks_at_itself_only_where_it_sees_nothing_else():
    query_key, value = draw(5, 4), draw(5, 3)
    alone = ~torch.eye(5, dtype=torch.bool)
    assert torch.equal(shared_attention(query_key, value, alone), value)
    changed = value.clone()
    changed[2] += 100
    after = shared_attention(query_key, changed)
    torch.testing.assert_close(after[2], shared_attention(query_key, value)[2])


def test_more_rounds_come_closer_to_the_full_attention():
    centers = torch.nn.functional.normalize(draw(8, 16), dim=-1)
    query_key = 12 * (centers.repeat(8, 1) + 0.1 * draw(64, 16))
    value = draw(64, 8)
    wanted = shared_attention(query_key, value)
    errors = [
        (lsh_attention(query_key, value, rotations(rounds, 16, 8), chunk_size=16) - wanted).norm().item()
        for rounds in (1, 8)
    ]
    assert errors[1] < errors[0] / 2


def test_no_table_of_all_pairs_is_allocated_and_gradients_are_finite():
    query_key, value = draw(2, 60, 6).requires_grad_(), draw(2, 60, 5).requires_grad_()

    def both_passes():
        lsh_attention(query_key, value, rotations(3, 6, 8), 8, causal=True).sum().backward()

    shapes = allocated_shapes(both_passes, views=True)
    assert (60, 60) not in {shape[-2:] for shape in shapes}
    assert query_key.grad.isfinite().all()
    assert value.grad.isfinite().all()


def test_half_precision_is_hashed_and_summed_in_single():
    query_key, value, r = draw(20, 6, dtype=torch.float16), draw(20, 5, dtype=torch.float16), rotations(2, 6, 4)
    got = lsh_attention(query_key, value, r, 8)
    assert got.dtype == torch.float16
    wanted = lsh_attention(query_key.double(), value.double(), r, 8)
    torch.testing.assert_close(got.double(), wanted, rtol=HALF_TOLERANCE, atol=HALF_TOLERANCE)


def test_what_does_not_fit_is_refused(unchecked_annotations):
    with pytest.raises(ValueError, match=r"`rotations` \(4, 3\) must have as many rows as `x` \(9, 5\)"):
        lsh_buckets(draw(9, 5), draw(4, 3))
    with pytest.raises(ValueError, match="`buckets` must be even, got 7"):
        random_rotations(2, 5, 7)
    with pytest.raises(ValueError, match="`chunk_size` must be at least 1, got 0"):
        lsh_attention(draw(9, 5), draw(9, 2), rotations(1, 5, 4), 0)
    with pytest.raises(ValueError, match=r"`value` \(8, 2\) and `query_key` \(9, 5\)"):
        lsh_attention(draw(9, 5), draw(8, 2), rotations(1, 5, 4), 3)
