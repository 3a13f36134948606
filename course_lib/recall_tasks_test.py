"""Every scored place of a task can be foretold by its rule, and nothing else is scored."""

from itertools import pairwise

import pytest
import torch

from course_lib.recall_tasks import UNSCORED, induction_batch, two_lookups_batch

LENGTH, VOCAB, SPAN = 20, 50, 6


def draw(distance=None, batch=300, seed=0):
    return induction_batch(batch, LENGTH, VOCAB, SPAN, torch.Generator().manual_seed(seed), distance)


def scored_places(targets):
    return [row.nonzero().flatten().tolist() for row in targets[..., 0] != UNSCORED]


def test_a_scored_place_and_its_answer_repeat_two_earlier_neighbors():
    tokens, targets = draw()
    for row, answers, places in zip(tokens.tolist(), targets[..., 0].tolist(), scored_places(targets), strict=True):
        assert len(places) == SPAN - 1
        for place in places:
            assert answers[place] == row[place + 1]
            earlier = pairwise(row[: place - SPAN + 2])
            assert (row[place], answers[place]) in earlier


def distances_and_starts(distance=None):
    """Find how far the copies lie apart, in tokens without chance repetitions."""
    tokens, targets = draw(distance)
    found = []
    for row, places in zip(tokens.tolist(), scored_places(targets), strict=True):
        span = row[places[0] : places[0] + SPAN]
        first = next(start for start in range(LENGTH) if row[start : start + SPAN] == span)
        found.append((places[0] - first, first))
    return found


def test_the_distance_and_the_start_are_random_and_every_possible_one_occurs():
    found = distances_and_starts()
    assert {distance for distance, _ in found} == set(range(SPAN, LENGTH - SPAN + 1))
    assert {start for _, start in found} == set(range(LENGTH - 2 * SPAN + 1))


def test_a_fixed_distance_is_kept():
    assert {distance for distance, _ in distances_and_starts(distance=9)} == {9}


def test_the_same_seed_gives_the_same_batch():
    assert all(torch.equal(a, b) for a, b in zip(draw(seed=3), draw(seed=3), strict=True))


@pytest.mark.parametrize(("span", "distance"), [(11, None), (1, None), (6, 5), (6, 15)])
def test_a_span_that_does_not_fit_is_refused(span, distance):
    with pytest.raises(ValueError, match=f"got span {span}, distance {distance}"):
        induction_batch(2, LENGTH, VOCAB, span, distance=distance)


def test_two_lookups_name_the_tokens_before():
    tokens, targets = two_lookups_batch(4, LENGTH, VOCAB, (1, 3), torch.Generator().manual_seed(0))
    assert targets.shape == (4, LENGTH, 2)
    assert (targets[:, :3] == UNSCORED).all()
    for place in range(3, LENGTH):
        assert torch.equal(targets[:, place], tokens[:, [place - 1, place - 3]])


@pytest.mark.parametrize("offsets", [(0, 1), (1, LENGTH)])
def test_offsets_that_reach_nowhere_are_refused(offsets):
    with pytest.raises(ValueError, match="`offsets` must lie in 1 … 19"):
        two_lookups_batch(2, LENGTH, VOCAB, offsets)
