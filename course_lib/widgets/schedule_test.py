"""The explorer of schedules tells the rates that the schedules give."""

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.training.schedules import cosine_rate, noam_rate
from course_lib.widgets.schedule import D_MODEL, SCHEDULES, TOTAL, draw, schedule_explorer

RELATIVE = 1e-12


def test_all_schedules_meet_at_the_peak():
    for name, rate in SCHEDULES.items():
        at = 499 if name == "original" else 500  # the original one counts from 1
        assert rate(at, 2e-3, 500) == pytest.approx(2e-3, rel=RELATIVE)


def test_the_original_keeps_its_form():
    ratio = noam_rate(4001, D_MODEL, 700) / noam_rate(101, D_MODEL, 700)
    assert SCHEDULES["original"](4000, 1.0, 700) / SCHEDULES["original"](100, 1.0, 700) == pytest.approx(ratio)


@settings(deadline=None)
@given(st.sampled_from([1e-4, 1e-2]), st.sampled_from([1, 200, 5000]), st.integers(0, TOTAL))
def test_picture_and_words_follow_the_controls(peak, warmup, step):
    picture, words = draw(peak, warmup, step)
    ElementTree.fromstring(picture)
    assert f"At step {step:,}" in words
    assert f"cosine {cosine_rate(step, TOTAL, peak, warmup, 0.1 * peak):.2g} (" in words


def test_the_start_is_described():
    assert schedule_explorer().describe().startswith("Peak 0.001, climb of 500 steps")
