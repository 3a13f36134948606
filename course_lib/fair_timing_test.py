"""On a device whose every second is known, the timer reports the seconds of the work."""

import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.fair_timing import FakeDevice, fair_seconds
from course_lib.timing import measure

TOLERANCE = 1e-9
seconds = st.floats(1e-4, 10)


def timed(device: FakeDevice, repeats: int, warmup: int) -> float:
    return fair_seconds(device.launch, device.synchronize, device.clock, repeats, warmup)


@given(
    st.lists(seconds, min_size=1, max_size=4),
    st.lists(seconds, min_size=1, max_size=9),
    seconds,
    st.integers(1, 6),
    st.integers(0, 4),
)
def test_the_median_of_launch_and_work_after_the_warm_up_is_found(launches, works, queued, repeats, warmup):
    device = FakeDevice(launches, works, queued)
    expected = statistics.median(
        launches[min(call, len(launches) - 1)] + works[min(call, len(works) - 1)]
        for call in range(warmup, warmup + repeats)
    )
    assert timed(device, repeats, warmup) == pytest.approx(expected, abs=TOLERANCE)
    assert device.calls == warmup + repeats


def test_without_waiting_only_the_launch_is_seen():
    device = FakeDevice([0.001], [5.0])
    assert fair_seconds(device.launch, lambda: None, device.clock, 3, 1) == pytest.approx(0.001)


def test_the_device_works_while_its_host_goes_on_and_one_waits_for_the_other():
    device = FakeDevice([1.0], [3.0], queued=2.0)
    device.launch()
    assert (device.now, device.busy_until) == (1.0, 5.0)
    device.launch()
    assert (device.now, device.busy_until) == (2.0, 8.0)
    device.synchronize()
    assert device.clock() == 8.0
    device.synchronize()
    assert device.clock() == 8.0


def test_a_real_function_is_timed_about_as_the_courses_timer_does():
    x = torch.ones(200, 200)
    now = iter(range(1000))
    assert fair_seconds(lambda: x @ x, lambda: None, lambda: next(now), 5, 1) == 1
    assert measure(lambda: x @ x, repeats=1, warmup=1, min_seconds=0).median > 0


@pytest.mark.parametrize(("repeats", "warmup"), [(0, 1), (-1, 1), (3, -1)])
def test_impossible_counts_are_refused(repeats, warmup):
    with pytest.raises(ValueError, match=f"got {repeats} and {warmup}"):
        timed(FakeDevice([1.0], [1.0]), repeats, warmup)


def test_a_device_without_times_is_refused():
    with pytest.raises(ValueError, match="at least one entry"):
        FakeDevice([], [1.0])
