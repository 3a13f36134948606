"""Check `pipeline_schedule`: who works on what, tick by tick. Any order inside a tick, and any schedule as short."""

from functools import partial
from typing import Any

import numpy as np

from autograder.compare import same
from autograder.exercise import Case, Exercise
from autograder.exercises.scaling_up import CHAPTER
from autograder.exercises.scaling_up.pipeline_sizes import one_microbatch, one_stage, two_counts
from autograder.program import Program, Run, call
from autograder.values import Raised, describe
from course_lib.training import pipeline

Ticks = list[list[tuple[int, int]]]


def whole(value: Any) -> int | None:
    """Read a whole number, Python's or NumPy's; None if it is none."""
    if isinstance(value, np.integer):
        return int(value)
    return value if type(value) is int else None


def read_ticks(outcome: Any) -> tuple[Ticks | None, str | None]:
    """Read a schedule, or say what it is instead."""
    if not isinstance(outcome, (list, tuple)):
        return None, f"expected a list of ticks, but the result is {describe(outcome)}"
    ticks: Ticks = []
    for number, tick in enumerate(outcome):
        if not isinstance(tick, (list, tuple)):
            return None, f"expected tick {number} to be a list of (stage, microbatch), but it is {describe(tick)}"
        pairs = []
        for pair in tick:
            numbers = [whole(value) for value in pair] if isinstance(pair, (list, tuple)) else []
            if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
                return None, f"expected tick {number} to hold pairs (stage, microbatch), but it has {describe(pair)}"
            pairs.append((numbers[0], numbers[1]))
        ticks.append(pairs)
    return ticks, None


def runs_and_is_short(program: Program, found: Run) -> str | None:
    """Give a sentence when the schedule cannot run, leaves something out or takes too long."""
    stages, microbatches = program.steps[0].args
    ticks, problem = read_ticks(found.outcomes[0])
    if ticks is None:
        return problem
    problem = pipeline.schedule_problem(ticks, stages, microbatches)
    if problem is None and len(ticks) > stages + microbatches - 1:
        return f"the schedule can run, but it takes {len(ticks)} ticks; {stages + microbatches - 1} are enough"
    return problem


def same_work(program: Program, ours: Run, theirs: Run) -> bool:
    """Tell whether two runs put the same pairs into the same ticks, or fail alike."""
    first, second = ours.outcomes[0], theirs.outcomes[0]
    if isinstance(first, Raised) or isinstance(second, Raised):
        return first == second
    one, other = read_ticks(first)[0], read_ticks(second)[0]
    if one is None or other is None:
        return same(first, second)
    return [sorted(tick) for tick in one] == [sorted(tick) for tick in other]


def case(name: str, program, hidden: bool = False) -> Case:
    """Make a case that accepts every schedule that is right."""
    return Case(name, program, hidden=hidden, judge=runs_and_is_short, alike=same_work)


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=pipeline.pipeline_schedule,
    returns=("the schedule",),
    cases=[
        case("3 stages and 4 microbatches", lambda draw: call(3, 4)),
        case("two counts", partial(two_counts, most=9)),
        case("more stages than microbatches", lambda draw: call(draw.integer(6, 9), draw.integer(2, 4)), hidden=True),
        case("one stage", one_stage, hidden=True),
        case("one microbatch", one_microbatch, hidden=True),
        case("more microbatches than stages", lambda draw: call(draw.integer(2, 4), draw.integer(6, 9)), hidden=True),
    ],
)


@exercise.misconception("""
    One pair per tick: while a stage works, all the others wait. That is the pipeline without any overlap. Which other
    stage has something to do in tick 1?
""")
def one_at_a_time(stages, microbatches):
    return [[(stage, microbatch)] for microbatch in range(microbatches) for stage in range(stages)]


@exercise.misconception("""
    All stages work on the same microbatch in the same tick. Stage 1 needs what stage 0 makes of it, so it can begin one
    tick later at the earliest.
""")
def no_hand_over(stages, microbatches):
    return [[(stage, tick) for stage in range(stages)] for tick in range(microbatches)]


@exercise.misconception("""
    Your pairs are (microbatch, stage). The contract has the stage first.
""")
def microbatch_first(stages, microbatches):
    return [[pair[::-1] for pair in tick] for tick in pipeline.pipeline_schedule(stages, microbatches)]


@exercise.misconception("""
    Your schedule ends too early: it is cut off when the last microbatch **enters**. It still has to pass the other
    stages.
""")
def never_drained(stages, microbatches):
    return pipeline.pipeline_schedule(stages, microbatches)[:microbatches]


@exercise.misconception("""
    Your schedule starts when all stages are busy. Before that the pipeline has to fill: in tick 0 only stage 0 has
    something to do.
""")
def never_filled(stages, microbatches):
    return pipeline.pipeline_schedule(stages, microbatches)[stages - 1 :]


@exercise.misconception("""
    The result is one flat list of pairs. A tick is a list of its own, so that one can see what happens at the same
    time.
""")
def flat_list(stages, microbatches):
    return [pair for tick in pipeline.pipeline_schedule(stages, microbatches) for pair in tick]


@exercise.misconception("""
    Your microbatches run up through the stages from the last to the first. The tokens enter at stage 0.
""")
def from_the_last_stage(stages, microbatches):
    ticks = pipeline.pipeline_schedule(stages, microbatches)
    return [[(stages - 1 - stage, microbatch) for stage, microbatch in tick] for tick in ticks]


@exercise.misconception("""
    A last tick stands in your schedule in which nothing happens: the ticks are 0 to m + s - 2, and there are m + s - 1
    of them.
""")
def one_tick_too_many(stages, microbatches):
    return [*pipeline.pipeline_schedule(stages, microbatches), []]


@exercise.misconception("""
    Your stage 0 takes a new microbatch only when the one before has left the whole pipeline... or nearly: stages wait
    that could work. A stage is free again as soon as it has handed its microbatch on.
""")
def every_other_tick(stages, microbatches):
    ticks = [[] for _ in range(stages + 2 * microbatches - 2)]
    for microbatch in range(microbatches):
        for stage in range(stages):
            ticks[stage + 2 * microbatch].append((stage, microbatch))
    return [tick for tick in ticks if tick]


@exercise.misconception("""
    Stages and microbatches are counted from 1 in your pairs. Here, as everywhere in Python, the first one is 0.
""")
def counted_from_one(stages, microbatches):
    ticks = pipeline.pipeline_schedule(stages, microbatches)
    return [[(stage + 1, microbatch + 1) for stage, microbatch in tick] for tick in ticks]


@exercise.alternative
def by_microbatch(stages, microbatches):
    ticks = [[] for _ in range(stages + microbatches - 1)]
    for microbatch in range(microbatches):
        for stage in range(stages):
            ticks[microbatch + stage].append((stage, microbatch))
    return ticks


@exercise.alternative
def late_stages_first(stages, microbatches):
    return tuple(
        tuple((s, t - s) for s in reversed(range(stages)) if 0 <= t - s < microbatches)
        for t in range(microbatches + stages - 1)
    )


@exercise.alternative
def last_microbatch_first(stages, microbatches):
    ticks = pipeline.pipeline_schedule(stages, microbatches)
    return [[(stage, microbatches - 1 - microbatch) for stage, microbatch in tick] for tick in ticks]


@exercise.alternative
def by_events(stages, microbatches):
    waiting = [list(range(microbatches))] + [[] for _ in range(stages - 1)]
    ticks = []
    while any(waiting):
        tick = [(stage, queue.pop(0)) for stage, queue in enumerate(waiting) if queue]
        for stage, microbatch in tick:
            if stage + 1 < stages:
                waiting[stage + 1].append(microbatch)
        ticks.append(tick)
    return ticks


@exercise.alternative
def with_numpy(stages, microbatches):
    table = np.arange(stages + microbatches - 1)[:, None] - np.arange(stages)
    return [[(s, row[s]) for s in range(stages) if 0 <= row[s] < microbatches] for row in table]
