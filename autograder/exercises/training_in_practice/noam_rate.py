"""Check `noam_rate`: the schedule of the original transformer."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.training_in_practice import CHAPTER
from autograder.program import Program, call
from course_lib.training import schedules


def climbing(draw: Draw) -> Program:
    """Draw a step well before the end of the climb."""
    warmup = draw.integer(200, 5000)
    return call(draw.integer(2, warmup // 3), draw.integer(60, 900), warmup)


def falling(draw: Draw) -> Program:
    """Draw a step long after the climb: beyond twice its length, where a straight line would be at 0."""
    warmup = draw.integer(200, 5000)
    return call(draw.integer(3 * warmup, 9 * warmup), draw.integer(60, 900), warmup)


def at_the_peak(draw: Draw) -> Program:
    """Take the last step of the climb."""
    warmup = draw.integer(200, 5000)
    return call(warmup, draw.integer(60, 900), warmup)


def by_name(draw: Draw) -> Program:
    """Give the arguments by name."""
    return call(step=draw.integer(5000, 9000), d_model=draw.integer(60, 900), warmup=draw.integer(300, 900))


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=schedules.noam_rate,
    returns=("the rate",),
    tolerance=1e-6,
    cases=[
        Case("on the climb", climbing),
        Case("long after it", falling),
        Case("the first step", lambda draw: call(1, draw.integer(60, 900), draw.integer(200, 5000)), hidden=True),
        Case("the peak", at_the_peak, hidden=True),
        Case("arguments by name", by_name, hidden=True),
        Case("a climb of one step", lambda draw: call(draw.integer(2, 50), draw.integer(60, 900), 1), hidden=True),
    ],
)


@exercise.misconception("""
    Your rate at the first step is higher than the one at the peak. You take the larger of the two arms. On the climb
    the straight line lies **below** the falling curve, and the rate should follow whichever is lower. Print both arms
    for steps 1, warmup and 4 · warmup.
""")
def larger_arm(step, d_model, warmup):
    return d_model**-0.5 * max(step**-0.5, step * warmup**-1.5)


@exercise.misconception("""
    Your rate does not depend on `d_model`. The paper gives wider models a lower rate: there is a factor d_model^-½.
""")
def width_forgotten(step, d_model, warmup):
    return min(step**-0.5, step * warmup**-1.5)


@exercise.misconception("""
    Your rate grows with the width. The power of `d_model` is **minus** one half. Which model should take the more
    careful steps, a wide one or a narrow one?
""")
def grows_with_width(step, d_model, warmup):
    return math.sqrt(d_model) * min(step**-0.5, step * warmup**-1.5)


@exercise.misconception("""
    Your rate is divided by `d_model` itself. The formula has its square root.
""")
def no_root_of_width(step, d_model, warmup):
    return min(step**-0.5, step * warmup**-1.5) / d_model


@exercise.misconception("""
    After the climb your rate falls in a straight line and is 0 at twice the climb. This schedule falls like 1/√step:
    fast at first, then ever more slowly, and never to 0.
""")
def straight_fall(step, d_model, warmup):
    return d_model**-0.5 * max(0.0, min(step * warmup**-1.5, (2 * warmup - step) * warmup**-1.5))


@exercise.misconception("""
    Your steps count from 0: the rate is the one of the step before, and at step 1 it is 0. In this schedule the first
    step is number 1, since step 0 would have to be raised to the power -½.
""")
def counts_from_zero(step, d_model, warmup):
    return 0.0 if step == 1 else schedules.noam_rate(step - 1, d_model, warmup)


@exercise.misconception("""
    Your steps are one ahead. `step` counts from 1 here already, so nothing has to be added to it.
""")
def adds_one(step, d_model, warmup):
    return schedules.noam_rate(step + 1, d_model, warmup)


@exercise.misconception("""
    There is no climb: your rate falls from the first step on, where it is highest. That is what the second argument
    of the minimum is for, `step · warmup^-1.5`.
""")
def no_climb(step, d_model, warmup):
    return d_model**-0.5 * step**-0.5


@exercise.misconception("""
    The rate stays where the climb ended. In this schedule it falls afterwards, like 1/√step.
""")
def stays_at_the_peak(step, d_model, warmup):
    return d_model**-0.5 * min(step, warmup) * warmup**-1.5


@exercise.misconception("""
    Your climb is step / warmup, so it does not meet the falling arm: at step = warmup one arm is 1 and the other
    warmup^-½. For which power p is warmup · warmup^p equal to warmup^-½?
""")
def arms_do_not_meet(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step / warmup)


@exercise.alternative
def by_cases(step, d_model, warmup):
    scale = 1 / math.sqrt(d_model)
    return scale * step / warmup**1.5 if step < warmup else scale / math.sqrt(step)


@exercise.alternative
def from_the_peak(step, d_model, warmup):
    peak = (d_model * warmup) ** -0.5
    return peak * min(step / warmup, math.sqrt(warmup / step))


@exercise.alternative
def in_numpy(step, d_model, warmup):
    return np.float64(d_model) ** -0.5 * np.minimum(np.float64(step) ** -0.5, step * np.float64(warmup) ** -1.5)
