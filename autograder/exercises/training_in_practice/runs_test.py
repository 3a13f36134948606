"""Drawn runs: the fault is unmistakable, and everything else looks healthy."""

import math

import pytest
import torch

from autograder.draw import Draw
from autograder.exercises.training_in_practice.runs import CHANGES, recorded
from course_lib.training.diagnosis import FAULTS, diagnose
from course_lib.training.limits import largest_safe_score
from course_lib.training.recorder import SERIES

SEEDS = range(40)


def runs_of(fault: str, steps: int = 90) -> list[dict[str, torch.Tensor]]:
    """Draw a run of each seed."""
    return [recorded(Draw(seed, "runs", "torch", "float64"), fault, steps) for seed in SEEDS]


def test_every_fault_can_be_drawn() -> None:
    assert set(CHANGES) == set(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_has_five_series_of_one_length_and_its_fault(fault: str) -> None:
    for run in runs_of(fault):
        assert tuple(run) == SERIES
        assert {len(series) for series in run.values()} == {90}
        assert diagnose(run) == fault


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "overflow"])
def test_only_an_overflow_has_numbers_that_are_none(fault: str) -> None:
    limit = largest_safe_score(torch.float32)
    for run in runs_of(fault):
        assert all(bool(torch.isfinite(series).all()) for series in run.values())
        assert run["max_score"].max() < limit / 2


def test_an_overflow_follows_a_score_beyond_the_limit() -> None:
    limit = largest_safe_score(torch.float32)
    for run in runs_of("overflow"):
        crash = int(run["loss"].isnan().nonzero()[0])
        assert run["max_score"][:crash].max() < limit < run["max_score"][crash]
        assert run["loss"][crash:].isnan().all()


def test_instruments_that_a_fault_leaves_alone_are_healthy() -> None:
    for fault in ("mask leaks the future", "heads collapsed"):
        for run in runs_of(fault):
            assert 0.1 < run["grad_norm"].min() < run["grad_norm"].max() < 5
            assert 1e-4 < run["update_ratio"].min() < run["update_ratio"].max() < 1e-2
    for run in runs_of("mask leaks the future"):
        assert run["attention_entropy"][-1] > 0.4 * run["attention_entropy"][0]
        assert run["loss"][-1] < 0.01 * run["loss"][0]


def test_the_first_loss_is_that_of_a_vocabulary() -> None:
    for run in runs_of("no warm-up"):
        assert math.exp(run["loss"][0].item()) == pytest.approx(round(math.exp(run["loss"][0].item())), rel=1e-6)
