"""The clinic: the healthy run reaches what is possible, the treated one recovers, and each fault shows its signs."""

import math

import pytest
import torch

from course_lib.training import clinic
from course_lib.training.clinic import HEALTHY, PATIENTS, admit, possible_loss, repeated_digits
from course_lib.training.limits import largest_safe_score

NEAR = 0.25  # nats above the lowest possible loss, after a hundred steps
UNMOVED = 1e-6  # step over weights: a thousandth of the usual


@pytest.fixture(autouse=True)
def full_length(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("COURSE_QUICK", raising=False)


@pytest.mark.parametrize("name", [HEALTHY, "no warm-up, treated"])
def test_healthy_and_treated_runs_come_near_the_lowest_honest_loss(name):
    record = admit(name).record
    assert possible_loss() - 0.05 < record.loss[-1] < possible_loss() + NEAR


def test_the_leaking_run_falls_below_what_is_possible():
    assert admit("mask leaks the future").record.loss[-1] < possible_loss() / 10


def test_nothing_moves_where_the_gradient_vanishes():
    assert max(admit("vanishing gradient").record.update_ratio) < UNMOVED


def test_the_overflow_ends_the_run_once_a_score_passes_the_limit():
    record = admit("overflow").record
    assert math.isnan(record.loss[-1])
    assert max(record.max_score[:-1]) < largest_safe_score(torch.float32) < record.max_score[-1]


def test_the_second_half_of_a_text_repeats_the_first():
    inputs, targets = repeated_digits(3, torch.Generator().manual_seed(0))
    text = torch.cat([inputs, targets[:, -1:]], dim=-1)
    assert torch.equal(text[:, : clinic.HALF], text[:, clinic.HALF :])
    assert torch.equal(inputs[:, 1:], targets[:, :-1])


def test_a_stay_depends_on_its_seed_alone():
    torch.manual_seed(0)
    first = admit(HEALTHY, seed=5).record.loss[:5]
    torch.manual_seed(1)
    assert admit(HEALTHY, seed=5).record.loss[:5] == first


def test_a_grading_run_takes_three_steps(monkeypatch):
    monkeypatch.setenv("COURSE_QUICK", "1")
    assert {len(admit(name).record.loss) for name in PATIENTS} == {clinic.SHORT}


def test_an_unknown_patient_is_named():
    with pytest.raises(ValueError, match="`name` must be one of 'healthy'"):
        admit("hypochondria")
