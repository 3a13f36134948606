"""Dropout's checks see the rule behind a random result, however the chances were drawn."""

import pytest
import torch

from autograder import evaluate
from autograder.exercises.norms_and_residuals.dropout import exercise
from autograder.exercises.norms_and_residuals.random_drops import drops

SEEDS = range(5)


def by_bernoulli(kept_share, factor):
    """Make a dropout with another way to draw than our wrong beliefs use, and with a rule of choice."""

    def solution(x, p, training, generator=None):
        if not 0 <= p < 1:
            raise ValueError("p")
        if not training or p == 0:
            return x
        kept = torch.bernoulli(torch.full_like(x, kept_share(p)), generator=generator)
        return x * kept * factor(p)

    return solution


@pytest.mark.parametrize(
    ("kept_share", "factor", "belief"),
    [
        (lambda p: 1 - p, lambda p: 1, "survivors_not_scaled"),
        (lambda p: 1 - p, lambda p: 1 - p, "survivors_scaled_down"),
        (lambda p: p, lambda p: 1 / p, "p_is_the_share_kept"),
        (lambda p: p, lambda p: 1 / (1 - p), "mask_the_wrong_way_round"),
        (lambda p: 1 - p, lambda p: 1 / p, "divided_by_p"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_belief_is_named_though_the_chances_were_drawn_in_another_way(kept_share, factor, belief):
    for seed in SEEDS:
        verdict = evaluate(by_bernoulli(kept_share, factor), "dropout", seed=seed)
        assert verdict.misconception == belief, verdict.message


def test_honest_share_that_is_slightly_off_is_refused_without_a_wrong_diagnosis():
    solution = by_bernoulli(lambda p: 1 - p / 2, lambda p: 1 / (1 - p / 2))
    for seed in SEEDS:
        verdict = evaluate(solution, "dropout", seed=seed)
        assert not verdict.passed
        assert verdict.misconception is None
        assert "of the entries should be 0" in verdict.message


def test_noise_on_what_is_kept_is_refused():
    def solution(x, p, training, generator=None):
        if not 0 <= p < 1:
            raise ValueError("p")
        kept = torch.rand(x.shape, generator=generator) >= p
        return x * kept / (1 - p) * torch.linspace(0.9, 1.1, x.shape[-1]) if training and p else x

    verdict = evaluate(solution, "dropout", seed=0)
    assert "not all multiplied by one and the same number" in verdict.message


@pytest.mark.parametrize("lines", ["token", "feature"])
def test_lines_that_fall_as_a_whole_are_seen(lines):
    x = torch.ones(6, 5)
    fallen = x.clone()
    if lines == "token":
        fallen[2] = 0
    else:
        fallen[:, 3] = 0
    assert drops(x, fallen).lines == lines
    fallen[0, 0] = 0
    assert drops(x, fallen).lines is None


def test_every_wrong_belief_says_something_of_its_own():
    words = [belief.words for belief in exercise.misconceptions.values()]
    assert len(set(words)) == len(words)
