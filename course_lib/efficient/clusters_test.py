"""Attention within learned clusters, against loops and against the quadratic form."""

import math

import jaxtyping
import pytest
import torch
import torch.nn.functional as F

from course_lib.dependence import dependence
from course_lib.efficient.clusters import moved_centroids, routing_attention
from course_lib.masks import causal_mask
from course_lib.tensor_attention import tensor_attention

TOLERANCE = 1e-12


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def by_loops(query, key, value, centroids, members, causal):
    """Follow the definition cluster by cluster and query by query."""
    answers = [[] for _ in query]
    for centroid in centroids:
        asking, asked = (
            sorted(range(len(x)), key=lambda place: -(F.normalize(x, dim=-1)[place] @ centroid).item())[:members]
            for x in (query, key)
        )
        for place in asking:
            seen = [other for other in asked if not causal or other <= place]
            scores = [(query[place] @ key[other]).item() / math.sqrt(query.shape[-1]) for other in seen]
            shares = [math.exp(score) for score in scores]
            parts = [share / sum(shares) * value[other] for share, other in zip(shares, seen, strict=True)]
            answers[place].append(sum(parts, torch.zeros_like(value[0])))
    return torch.stack([torch.stack(rows).mean(0) if rows else torch.zeros_like(value[0]) for rows in answers])


@pytest.mark.parametrize("causal", [False, True])
def test_members_of_a_cluster_attend_to_each_other_alone(causal):
    query, key, value, centroids = draw(3, 12, 4), draw(3, 12, 4, seed=1), draw(3, 12, 5), draw(3, 4)
    got = routing_attention(query, key, value, centroids, 5, causal)
    wanted = [by_loops(*one, centroids, 5, causal) for one in zip(query, key, value, strict=True)]
    torch.testing.assert_close(got, torch.stack(wanted), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("causal", [False, True])
def test_one_cluster_of_all_tokens_is_plain_attention(causal):
    query, key, value = draw(2, 3, 7, 4), draw(2, 3, 7, 4, seed=1), draw(2, 3, 7, 6)
    got = routing_attention(query, key, value, draw(1, 4), 7, causal)
    wanted = tensor_attention(query, key, value, causal_mask(7) if causal else None)[0]
    torch.testing.assert_close(got, wanted, rtol=0, atol=TOLERANCE)


def test_a_query_that_no_centroid_picks_gets_zero():
    toward, away = torch.tensor([[1.0, 0], [0.9, 0.1]]), torch.tensor([[-1.0, 0]])
    x = torch.cat([toward, away]).double()
    got = routing_attention(x, x, draw(3, 2), torch.tensor([[1.0, 0]]).double(), 2)
    assert (got[:2] != 0).all()
    assert (got[2] == 0).all()


def test_values_of_later_tokens_have_no_influence_when_causal():
    query, key, centroids = draw(9, 4), draw(9, 4, seed=1), draw(3, 4)
    found = dependence(lambda value: routing_attention(query, key, value, centroids, 4, causal=True), draw(9, 2))
    assert not found.triu(1).any()
    assert found.tril().any()


def test_centroids_find_the_clusters_of_their_vectors():
    truth = torch.eye(3, 8, dtype=torch.float64)
    x = truth.repeat(20, 1) + 0.05 * draw(60, 8)
    centroids = F.normalize(truth + 0.25 * draw(3, 8, seed=2), dim=-1)
    before = (centroids * truth).sum(-1).min()
    for _ in range(30):
        centroids = moved_centroids(centroids, x, decay=0.8)
    assert before < 0.95
    assert (centroids * truth).sum(-1).min() > 0.99
    assert torch.allclose(centroids.norm(dim=-1), torch.ones(3, dtype=torch.float64))


def test_a_centroid_without_vectors_stays():
    centroids = torch.tensor([[1.0, 0], [-1, 0]])
    moved = moved_centroids(centroids, torch.tensor([[2.0, 0.5]]), decay=0.5)
    assert torch.equal(moved[1], centroids[1])
    assert not torch.equal(moved[0], centroids[0])


def test_bad_sizes_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    x = draw(5, 4)
    with pytest.raises(ValueError, match="`members` is 6, and there are only 5 tokens"):
        routing_attention(x, x, x, draw(2, 4), 6)
    with pytest.raises(TypeError, match="`members`"):
        routing_attention(x, x, x, draw(2, 4), 2.5)
    with pytest.raises(ValueError, match="`decay`"):
        moved_centroids(draw(2, 4), x, decay=1.5)
