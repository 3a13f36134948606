"""Check `cosine_rate`: a straight climb, then half a cosine wave."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.training_in_practice import CHAPTER
from autograder.program import Program, call
from course_lib.training import schedules


def drawn(draw: Draw, low: float, high: float, floored: bool = True, warmup: int | None = None) -> Program:
    """Draw a step between two shares of the way from the climb's end to the total; below 0 on the climb."""
    warmup = draw.integer(40, 90) if warmup is None else warmup
    total = warmup + draw.integer(300, 900)
    share = draw.number(low, high)
    step = round(warmup + share * (total - warmup)) if share >= 0 else round(warmup * (1 + share))
    peak = draw.number(0.2, 0.9)
    return call(step, total, peak, warmup, draw.number(0.01, 0.05)) if floored else call(step, total, peak, warmup)


def at_the_peak(draw: Draw) -> Program:
    """Take the first step after the climb."""
    warmup = draw.integer(40, 90)
    return call(warmup, warmup + draw.integer(300, 900), draw.number(0.2, 0.9), warmup, draw.number(0.01, 0.05))


def at_the_end(draw: Draw) -> Program:
    """Take the last step, and a floor that is not 0."""
    total = draw.integer(300, 900)
    return call(total, total, draw.number(0.2, 0.9), draw.integer(40, 90), draw.number(0.01, 0.05))


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=schedules.cosine_rate,
    returns=("the rate",),
    tolerance=1e-6,
    cases=[
        Case("on the climb", lambda draw: drawn(draw, -0.8, -0.3)),
        Case("on the fall", lambda draw: drawn(draw, 0.1, 0.35)),
        Case("no floor", lambda draw: drawn(draw, 0.6, 0.9, floored=False)),
        Case("after the end", lambda draw: drawn(draw, 1.2, 1.8), hidden=True),
        Case("the first step of all", lambda draw: drawn(draw, -1.0, -1.0), hidden=True),
        Case("the peak", at_the_peak, hidden=True),
        Case("the end", at_the_end, hidden=True),
        Case("no climb", lambda draw: drawn(draw, 0.1, 0.9, warmup=0), hidden=True),
        Case("late on the fall", lambda draw: drawn(draw, 0.7, 0.95), hidden=True),
    ],
)


def _rate(share, peak, floor):
    return floor + (peak - floor) * (1 + math.cos(math.pi * min(share, 1.0))) / 2


@exercise.misconception("""
    Right after the climb your rate is already below the peak. The wave should begin where the climb ends: measure the
    share of the way as (step − warmup) / (total − warmup), so that it is 0 there and 1 at the end.
""")
def wave_from_step_zero(step, total, peak, warmup, floor=0.0):
    return peak * step / warmup if step < warmup else _rate(step / total, peak, floor)


@exercise.misconception("""
    Your wave reaches the floor `warmup` steps after `total`. `total` counts all steps, the climb included, so the
    fall has only total − warmup of them.
""")
def fall_takes_all_steps(step, total, peak, warmup, floor=0.0):
    return peak * step / warmup if step < warmup else _rate((step - warmup) / total, peak, floor)


@exercise.misconception("""
    Your rate comes back up after `total`: a cosine goes on waving. From `total` on it should stay at `floor`.
""")
def comes_back_up(step, total, peak, warmup, floor=0.0):
    if step < warmup:
        return peak * step / warmup
    share = (step - warmup) / (total - warmup)
    return floor + (peak - floor) * (1 + math.cos(math.pi * share)) / 2


@exercise.misconception("""
    You cut the wave off at the floor, with a maximum. The floor is where the wave **ends**: scale its height to
    peak − floor and add the floor.
""")
def floor_as_a_limit(step, total, peak, warmup, floor=0.0):
    if step < warmup:
        return peak * step / warmup
    return max(floor, _rate((step - warmup) / (total - warmup), peak, 0.0))


@exercise.misconception("""
    Your wave starts above the peak: it has the full height of the peak, and the floor comes on top. Its height should
    be peak − floor.
""")
def floor_on_top(step, total, peak, warmup, floor=0.0):
    if step < warmup:
        return peak * step / warmup
    return floor + _rate((step - warmup) / (total - warmup), peak, 0.0) if step < total else floor


@exercise.misconception("""
    The floor is not used: your rate ends at 0.
""")
def floor_forgotten(step, total, peak, warmup, floor=0.0):
    return peak * step / warmup if step < warmup else _rate((step - warmup) / (total - warmup), peak, 0.0)


@exercise.misconception("""
    Your rate is at the floor half-way, and then climbs again: you go through a whole wave. Half of one, from cos 0 = 1
    to cos π = −1, takes the rate from the peak to the floor.
""")
def whole_wave(step, total, peak, warmup, floor=0.0):
    if step < warmup:
        return peak * step / warmup
    if step >= total:
        return floor
    share = (step - warmup) / (total - warmup)
    return floor + (peak - floor) * (1 + math.cos(2 * math.pi * share)) / 2


@exercise.misconception("""
    You use a quarter of a wave, cos from 0 to π/2. It falls slowly at first and fast at the end; half a wave is slow
    at both ends: (1 + cos(π · share)) / 2.
""")
def quarter_wave(step, total, peak, warmup, floor=0.0):
    if step < warmup:
        return peak * step / warmup
    return floor + (peak - floor) * math.cos(math.pi / 2 * min(1.0, (step - warmup) / (total - warmup)))


@exercise.misconception("""
    Your climb starts at the floor. In this contract it starts at 0: the rate at step 0 is 0, whatever the floor.
""")
def climb_from_the_floor(step, total, peak, warmup, floor=0.0):
    if step < warmup:
        return floor + (peak - floor) * step / warmup
    return _rate((step - warmup) / (total - warmup), peak, floor)


@exercise.misconception("""
    Your climb is one step ahead: it is at the peak in step warmup − 1 already. Steps count from 0 here, and the rate
    below `warmup` is peak · step / warmup.
""")
def climb_one_ahead(step, total, peak, warmup, floor=0.0):
    if step < warmup:
        return peak * (step + 1) / warmup
    return _rate((step - warmup) / (total - warmup), peak, floor)


@exercise.misconception("""
    After the climb your rate falls in a straight line. That is BERT's schedule and a fine one; this one follows half
    a cosine wave.
""")
def straight_fall(step, total, peak, warmup, floor=0.0):
    if step < warmup:
        return peak * step / warmup
    return peak + (floor - peak) * min(1.0, (step - warmup) / (total - warmup))


@exercise.misconception("""
    There is no climb: your rate starts at the peak.
""")
def no_climb(step, total, peak, warmup, floor=0.0):
    return _rate(max(0.0, (step - warmup) / (total - warmup)), peak, floor)


@exercise.alternative
def by_sine_squared(step, total, peak, warmup, floor=0.0):
    if step < warmup:
        return peak * (step / warmup)
    share = min(1.0, (step - warmup) / (total - warmup))
    return peak - (peak - floor) * math.sin(math.pi / 2 * share) ** 2


@exercise.alternative
def in_numpy(step, total, peak, warmup, floor=0.0):
    if step < warmup:
        return np.float64(step) / warmup * peak
    share = np.clip((step - warmup) / (total - warmup), 0, 1)
    return floor + 0.5 * (peak - floor) * (1 + np.cos(np.pi * share))
