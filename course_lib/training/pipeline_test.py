"""A pipeline's schedule can run, is as short as any, and waits as its formula says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.training.pipeline import bubble_fraction, pipeline_schedule, schedule_problem

counts = st.integers(1, 7)


def greedy(stages, microbatches):
    """Let every stage take the next microbatch as soon as the stage before has handed it over: an event at a time."""
    free, ready, ticks = [0] * stages, [0] * microbatches, {}
    for microbatch in range(microbatches):
        for stage in range(stages):
            start = max(free[stage], ready[microbatch])
            free[stage] = ready[microbatch] = start + 1
            ticks.setdefault(start, set()).add((stage, microbatch))
    return [ticks[tick] for tick in sorted(ticks)]


@given(counts, counts)
def test_the_schedule_is_that_of_stages_which_work_as_soon_as_they_can(stages, microbatches):
    ticks = pipeline_schedule(stages, microbatches)
    assert [set(tick) for tick in ticks] == greedy(stages, microbatches)
    assert schedule_problem(ticks, stages, microbatches) is None


@given(counts, counts)
def test_the_bubble_is_the_share_of_empty_places_in_the_schedule(stages, microbatches):
    ticks = pipeline_schedule(stages, microbatches)
    empty = stages * len(ticks) - sum(map(len, ticks))
    assert bubble_fraction(stages, microbatches) == pytest.approx(empty / (stages * len(ticks)))


@pytest.mark.parametrize(
    ("ticks", "words"),
    [
        ([[(0, 0)], [], [(1, 0)]], "tick 1 is empty"),
        ([[(0, 0), (0, 1)], [(1, 0)], [(1, 1)]], "stage 0 does 2 things at once"),
        ([[(0, 0), (1, 0)]], "which stage 0 has not finished"),
        ([[(1, 0)], [(0, 0)]], "which stage 0 has not finished"),
        ([[(0, 0)], [(0, 0)]], "works on microbatch 0 twice"),
        ([[(2, 0)]], "there is no such pair"),
        ([[(0, 0)], [(1, 0)]], "stage 0 never works on microbatch 1"),
    ],
)
def test_a_schedule_that_cannot_run_is_told_apart(ticks, words):
    problem = schedule_problem(ticks, 2, 2)
    assert problem is not None
    assert words in problem


@pytest.mark.parametrize("function", [bubble_fraction, pipeline_schedule], ids=["bubble", "schedule"])
def test_counts_below_one_are_refused(function):
    with pytest.raises(ValueError, match="stages"):
        function(0, 1)
    with pytest.raises(ValueError, match="microbatches"):
        function(1, 0)
