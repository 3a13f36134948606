"""T5's buckets against a search over exact ranges, and against values of the published code."""

from fractions import Fraction

import jaxtyping
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.buckets import relative_position_bucket


def bucket_by_search(relative, bidirectional, num_buckets, max_distance):
    """Find the bucket with whole numbers alone: bucket exact + k begins where (d/exact)^K ≥ (max/exact)^k."""
    per_direction = num_buckets // 2 if bidirectional else num_buckets
    offset = per_direction if bidirectional and relative > 0 else 0
    distance = abs(relative) if bidirectional else max(0, -relative)
    exact = per_direction // 2
    if distance < exact:
        return offset + distance
    groups = per_direction - exact
    reached = [k for k in range(groups) if Fraction(distance, exact) ** groups >= Fraction(max_distance, exact) ** k]
    return offset + exact + max(reached)


@given(st.integers(-300, 300), st.booleans(), st.sampled_from([(32, 128), (16, 64), (20, 100), (8, 50)]))
def test_buckets_equal_an_exact_search(relative, bidirectional, sizes):
    got = relative_position_bucket(torch.tensor([relative]), bidirectional, *sizes)
    assert got.dtype == torch.int64
    assert got.item() == bucket_by_search(relative, bidirectional, *sizes)


@pytest.mark.parametrize(
    ("bidirectional", "published"),
    [
        (True, {-300: 15, -128: 15, -9: 8, -8: 8, -1: 1, 0: 0, 1: 17, 8: 24, 9: 24, 128: 31, 300: 31}),
        (False, {-300: 31, -128: 31, -17: 16, -16: 16, -1: 1, 0: 0, 1: 0, 50: 0}),
    ],
)
def test_buckets_equal_the_published_code(bidirectional, published):
    got = relative_position_bucket(torch.tensor(list(published)), bidirectional)
    assert got.tolist() == list(published.values())


@pytest.mark.parametrize("bidirectional", [True, False])
def test_every_bucket_is_used_and_buckets_grow_with_distance(bidirectional):
    places = torch.arange(-200, 201)
    buckets = relative_position_bucket(places, bidirectional)
    # Bucket 16 would hold the distance 0 after the query, which is no distance after it.
    assert set(buckets.tolist()) == set(range(32)) - ({16} if bidirectional else set())
    before = buckets[places <= 0].flip(0)
    assert (before.diff() >= 0).all()


def test_any_shape_is_kept():
    places = torch.arange(6).view(2, 3)
    assert relative_position_bucket(places, True).shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: relative_position_bucket(torch.tensor([1.0]), True), TypeError, "must hold whole numbers"),
        (lambda: relative_position_bucket(torch.tensor([1]), True, 3), ValueError, "`num_buckets` must be at least 4"),
        (lambda: relative_position_bucket(torch.tensor([1]), False, 32, 16), ValueError, "must exceed the 16 exact"),
    ],
)
def test_a_bad_argument_is_named(call, error, words, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=words):
        call()
