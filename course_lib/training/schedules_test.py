"""Schedules: the framework's own, a formula of the paper by hand, and their corners."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, SequentialLR

from course_lib.training.schedules import cosine_rate, linear_rate, noam_rate

RELATIVE = 1e-9
NEAR_ZERO = 1e-12  # a cosine misses its last 0 by rounding


def optimizer(rate):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)


def rates_of(scheduler, steps):
    found = []
    for _ in range(steps):
        found.append(scheduler.get_last_lr()[0])
        scheduler.optimizer.step()
        scheduler.step()
    return found


def test_the_fall_is_that_of_the_framework():
    peak, floor, total = 0.3, 0.02, 40
    oracle = rates_of(CosineAnnealingLR(optimizer(peak), T_max=total, eta_min=floor), total)
    ours = [cosine_rate(step, total, peak, warmup=0, floor=floor) for step in range(total)]
    assert ours == pytest.approx(oracle, rel=RELATIVE)


def test_climb_and_fall_are_those_of_a_framework_sequence():
    peak, warmup, total = 0.5, 8, 30
    falling = optimizer(peak)
    tiny = 1e-12  # the framework's factor must be above 0
    climb = LinearLR(falling, start_factor=tiny, total_iters=warmup)
    fall = CosineAnnealingLR(falling, T_max=total - warmup)
    oracle = rates_of(SequentialLR(falling, [climb, fall], milestones=[warmup]), total)
    ours = [cosine_rate(step, total, peak, warmup) for step in range(total)]
    assert ours == pytest.approx(oracle, rel=1e-6, abs=10 * tiny)


def test_the_straight_fall_is_that_of_the_framework():
    peak, total = 0.2, 25
    oracle = rates_of(LinearLR(optimizer(peak), start_factor=1.0, end_factor=0.0, total_iters=total), total + 3)
    ours = [linear_rate(step, total, peak, warmup=0) for step in range(total + 3)]
    assert ours == pytest.approx(oracle, rel=1e-6, abs=NEAR_ZERO)


def test_the_original_schedule_drives_the_framework_to_the_paper_s_peak():
    # d_model 512 and 4000 steps, the paper's base model: 512^-0.5 · 4000^-0.5
    driven = LambdaLR(optimizer(1.0), lambda index: noam_rate(index + 1, 512, 4000))
    assert driven.get_last_lr()[0] == pytest.approx(512**-0.5 * 4000**-1.5, rel=RELATIVE)
    assert noam_rate(4000, 512, 4000) == pytest.approx(1 / math.sqrt(512 * 4000), rel=RELATIVE)


@given(st.integers(1, 10_000), st.integers(1, 2000), st.integers(1, 1000))
def test_the_original_schedule_peaks_at_the_end_of_the_climb(step, warmup, d_model):
    assert noam_rate(step, d_model, warmup) <= noam_rate(warmup, d_model, warmup) * (1 + RELATIVE)


@given(st.integers(0, 300), st.integers(0, 90), st.floats(1e-5, 1.0), st.floats(0, 1))
def test_a_cosine_never_leaves_its_bounds(step, warmup, peak, share):
    floor = share * peak
    rate = cosine_rate(step, 100, peak, warmup, floor)
    assert 0 <= rate <= peak * (1 + RELATIVE)
    assert step < warmup or rate >= floor * (1 - RELATIVE)


def test_corners_of_the_cosine():
    assert cosine_rate(0, 10, 0.5, warmup=4) == 0
    assert cosine_rate(2, 10, 0.5, warmup=4) == pytest.approx(0.25, rel=RELATIVE)
    assert cosine_rate(4, 10, 0.5, warmup=4, floor=0.1) == pytest.approx(0.5, rel=RELATIVE)
    assert cosine_rate(7, 10, 0.5, warmup=4, floor=0.1) == pytest.approx(0.3, rel=RELATIVE)
    assert cosine_rate(10, 10, 0.5, warmup=4, floor=0.1) == 0.1
    assert cosine_rate(99, 10, 0.5, warmup=4, floor=0.1) == 0.1


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: noam_rate(0, 8, 4), "`step`"),
        (lambda: noam_rate(1, 0, 4), "`d_model`"),
        (lambda: noam_rate(1, 8, 0), "`warmup`"),
        (lambda: cosine_rate(-1, 10, 1.0, 2), "`step`"),
        (lambda: cosine_rate(1, 10, 1.0, -2), "`warmup`"),
        (lambda: cosine_rate(1, 10, 1.0, 10), "`warmup` must end before `total`"),
        (lambda: linear_rate(1, 5, 1.0, 7), "`warmup` must end before `total`"),
    ],
    ids=["step", "width", "climb", "negative step", "negative climb", "no room", "no room for the line"],
)
def test_impossible_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()
