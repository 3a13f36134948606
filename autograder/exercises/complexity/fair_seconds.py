"""Check `fair_seconds`: a bug hunt. The timer runs, and its numbers are about something else."""

import statistics

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.complexity import CHAPTER
from autograder.program import Program, Run, call
from autograder.values import Named, Raised
from course_lib import fair_timing
from course_lib.fair_timing import FakeDevice

PARTS = ("launch", "synchronize", "clock")
OUTLIER = 30  # times as long as a usual call: another program was running
MILLISECONDS = 1000


def steady(draw: Draw, repeats: int, usual: float) -> list[float]:
    """Draw times that all differ: the first is the shortest, so that whatever is added to it moves the median."""
    middle = [usual * (1 + (place + draw.number(0.2, 0.8)) / repeats) for place in range(repeats - 2)]
    order = draw.random.permutation(len(middle))
    return [usual * 0.9, *(middle[place] for place in order), usual * OUTLIER][:repeats]


def timed(
    draw: Draw, repeats: int, warmup: int, *, queued: float = 0.0, launch: float = 0.002, work: float = 0.02
) -> Program:
    """Draw a device that starts cold and warms up over the calls that do not count."""
    launches = [launch * draw.number(20, 30) for _ in range(warmup)] + steady(draw, repeats, launch)
    works = [work * draw.number(40, 60) for _ in range(warmup)] + steady(draw, repeats, work)
    launches, works = ([round(seconds, 9) for seconds in times] for times in (launches, works))
    parts = [Named("device", (launches, works, queued), part=part) for part in PARTS]
    return call(*parts, repeats, warmup)


def calls_counted(program: Program, found: Run) -> str | None:
    """Give a sentence when the work ran another number of times than asked for."""
    repeats, warmup = program.steps[0].args[3:]
    ran = found.calls.get("device.launch", 0)
    if ran == repeats + warmup or isinstance(found.outcomes[0], Raised):
        return None
    return f"`function` ran {ran} times, but {warmup} calls to warm up and {repeats} timed ones make {repeats + warmup}"


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=fair_timing.fair_seconds,
    returns=("the seconds",),
    properties=[calls_counted],
    named={"device": FakeDevice},
    cases=[
        Case("a device that starts cold", lambda draw: timed(draw, 5, 3)),
        Case("a device that is warm, and busy at first", lambda draw: timed(draw, 5, 0, queued=3.0)),
        Case("an even number of repeats", lambda draw: timed(draw, 6, 2), hidden=True),
        Case("one repeat on a busy device", lambda draw: timed(draw, 1, 0, queued=2.0), hidden=True),
        Case(
            "the host is slower than the device", lambda draw: timed(draw, 7, 2, launch=0.05, work=0.001), hidden=True
        ),
        Case("another device that starts cold", lambda draw: timed(draw, 9, 4, queued=0.5), hidden=True),
    ],
)


def _time(function, synchronize, clock, repeats, warmup, *, warm=True, before=True, after=True, summary=None):
    """Run the timer with each of its parts left out or kept."""
    for _ in range(warmup if warm else 0):
        function()
    samples = []
    for _ in range(repeats):
        if before:
            synchronize()
        start = clock()
        function()
        if after:
            synchronize()
        samples.append(clock() - start)
    return (summary or statistics.median)(samples)


@exercise.misconception("""
    This is the function as you found it: none of its faults is mended yet. On this device handing the work over costs
    almost nothing, the first calls are slow, and one call in between was disturbed. Which of the three does your number
    show?
""")
def starter_unchanged(function, synchronize, clock, repeats, warmup):
    return _time(
        function, synchronize, clock, repeats, warmup, warm=False, before=False, after=False, summary=statistics.mean
    )


@exercise.misconception("""
    Your clock stops as soon as the work has been handed over; the device is still at it. Your number does not change
    when the work takes ten times as long: try it with a `FakeDevice`.
""")
def stopped_too_early(function, synchronize, clock, repeats, warmup):
    return _time(function, synchronize, clock, repeats, warmup, before=False, after=False)


@exercise.misconception("""
    Your clock starts while the device is still busy with what came before: the warm-up, or somebody else's work. The
    first sample pays for that. When is it safe to look at the clock for the first time?
""")
def started_too_early(function, synchronize, clock, repeats, warmup):
    return _time(function, synchronize, clock, repeats, warmup, before=False)


@exercise.misconception("""
    You wait for the device **after** you looked at the clock, so the waiting is in your first sample. Wait first, then
    look.
""")
def waited_on_the_clock(function, synchronize, clock, repeats, warmup):
    for _ in range(warmup):
        function()
    samples = []
    for _ in range(repeats):
        start = clock()
        synchronize()
        function()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)


@exercise.misconception("""
    The first calls are slow (memory is fetched, code is compiled), and your samples hold them: `warmup` has no
    influence. Run the function that many times before you begin.
""")
def not_warmed_up(function, synchronize, clock, repeats, warmup):
    return _time(function, synchronize, clock, repeats, warmup, warm=False)


@exercise.misconception("""
    Your result is the mean. One call in this case took thirty times as long as the others, because something else was
    running; a mean carries that into its result. Which summary hardly notices a single sample?
""")
def averaged(function, synchronize, clock, repeats, warmup):
    return _time(function, synchronize, clock, repeats, warmup, summary=statistics.mean)


@exercise.misconception("""
    Your clock stops as soon as the work has been handed over, and the mean lets one disturbed call decide. The slow
    first calls are taken care of.
""")
def stopped_too_early_and_averaged(function, synchronize, clock, repeats, warmup):
    return _time(function, synchronize, clock, repeats, warmup, before=False, after=False, summary=statistics.mean)


@exercise.misconception("""
    Your clock stops as soon as the work has been handed over, and the slow first calls are in your samples. The median
    is right.
""")
def stopped_too_early_and_cold(function, synchronize, clock, repeats, warmup):
    return _time(function, synchronize, clock, repeats, warmup, warm=False, before=False, after=False)


@exercise.misconception("""
    You wait for the device, good. Still your samples hold the slow first calls, and the mean lets one disturbed call
    decide.
""")
def cold_and_averaged(function, synchronize, clock, repeats, warmup):
    return _time(function, synchronize, clock, repeats, warmup, warm=False, summary=statistics.mean)


@exercise.misconception("""
    Your result is the fastest sample. For a quiet machine that is a fair choice, and Python's own `timeit` recommends
    it; the contract asks for the median, which tells what to expect.
""")
def fastest_sample(function, synchronize, clock, repeats, warmup):
    return _time(function, synchronize, clock, repeats, warmup, summary=min)


@exercise.misconception("""
    The calls of the warm-up are among your samples. They are run so that their time does **not** count.
""")
def warm_up_counted(function, synchronize, clock, repeats, warmup):
    return _time(function, synchronize, clock, repeats + warmup, 0)


@exercise.misconception("""
    You warm up before every sample. Once is enough: a warm function stays warm, and the measurement would take many
    times as long.
""")
def warmed_up_every_time(function, synchronize, clock, repeats, warmup):
    samples = []
    for _ in range(repeats):
        samples.append(_time(function, synchronize, clock, 1, warmup))
    return statistics.median(samples)


@exercise.misconception("""
    You time all repeats in one go and divide. The device can then work on one call while the host hands over the next,
    so the cost of handing over disappears; and a disturbed call is shared out among all. Time each call by itself.
""")
def all_in_one_go(function, synchronize, clock, repeats, warmup):
    for _ in range(warmup):
        function()
    synchronize()
    start = clock()
    for _ in range(repeats):
        function()
    synchronize()
    return (clock() - start) / repeats


@exercise.misconception("""
    With an even number of samples you take the upper of the two in the middle. The median is halfway between them;
    `statistics.median` knows.
""")
def upper_middle(function, synchronize, clock, repeats, warmup):
    return _time(function, synchronize, clock, repeats, warmup, summary=statistics.median_high)


@exercise.misconception("""
    The samples are not sorted when you take the one in the middle. The median is the middle by **size**.
""")
def middle_by_time(function, synchronize, clock, repeats, warmup):
    return _time(function, synchronize, clock, repeats, warmup, summary=lambda samples: samples[len(samples) // 2])


@exercise.misconception("""
    Your result is in milliseconds. The contract asks for seconds, the unit of the clock.
""")
def in_milliseconds(function, synchronize, clock, repeats, warmup):
    return MILLISECONDS * fair_timing.fair_seconds(function, synchronize, clock, repeats, warmup)


@exercise.alternative
def waiting_after_the_warm_up(function, synchronize, clock, repeats, warmup):
    for _ in range(warmup):
        function()
    synchronize()
    samples = []
    for _ in range(repeats):
        start = clock()
        function()
        synchronize()
        samples.append(clock() - start)
    return np.median(samples)


@exercise.alternative
def waiting_in_the_warm_up(function, synchronize, clock, repeats, warmup):
    for _ in range(warmup):
        function()
        synchronize()
    samples = []
    for _ in range(repeats):
        synchronize()
        before = clock()
        function()
        synchronize()
        after = clock()
        samples.append(after - before)
    samples.sort()
    return (samples[(repeats - 1) // 2] + samples[repeats // 2]) / 2


@exercise.alternative
def with_a_helper(function, synchronize, clock, repeats, warmup):
    def sample():
        synchronize()
        start = clock()
        function()
        synchronize()
        return clock() - start

    for _ in range(warmup):
        sample()
    return statistics.median([sample() for _ in range(repeats)])


@exercise.alternative
def dropping_the_first_samples(function, synchronize, clock, repeats, warmup):
    samples = []
    for _ in range(warmup + repeats):
        synchronize()
        start = clock()
        function()
        synchronize()
        samples.append(clock() - start)
    return float(np.median(np.array(samples[warmup:])))
