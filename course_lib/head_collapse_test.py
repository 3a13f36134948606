"""The alarm rings for copies and not for strangers; for soft maps it needs a baseline."""

import itertools

import torch
import torch.nn.functional as F

from course_lib.head_analysis import uniform_weights
from course_lib.head_collapse import head_collapse

SHARP = 4.0  # scale of scores at which unrelated maps differ clearly


def maps(scale, heads=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(3, heads, 6, 7, generator=generator)).softmax(-1)


def pairs_by_loops(weights, threshold):
    """Compare pair by pair with the framework's cosine."""
    found = []
    for i, j in itertools.combinations(range(weights.shape[1]), 2):
        cosines = [F.cosine_similarity(row[i].flatten(), row[j].flatten(), dim=0).item() for row in weights]
        if sum(cosines) / len(cosines) > threshold:
            found.append((i, j))
    return found


def test_copies_are_found_and_strangers_are_not():
    weights = maps(SHARP)
    weights[:, 3] = weights[:, 1]
    assert head_collapse(weights) == [(1, 3)]


def test_pairs_are_those_that_two_loops_find():
    weights = maps(1.0)
    found = [head_collapse(weights, threshold) for threshold in (0.5, 0.55, 0.6, 0.9)]
    assert found == [pairs_by_loops(weights, threshold) for threshold in (0.5, 0.55, 0.6, 0.9)]
    assert len({len(pairs) for pairs in found}) > 1


def test_soft_maps_are_a_false_alarm_until_the_even_map_is_taken_away():
    weights = maps(0.1)
    even = uniform_weights(torch.zeros(6, 7, dtype=torch.bool))
    assert len(head_collapse(weights)) == 10
    assert head_collapse(weights - even) == []
