"""Check `attainable_flops`: the roofline, a slope and a flat top."""

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.complexity import CHAPTER
from autograder.program import Program, call
from course_lib import roofline


def machine(draw: Draw, low: float, high: float) -> Program:
    """Draw a machine, and an intensity between two shares of the one at which its roof bends."""
    peak, bandwidth = draw.number(2e11, 9e11), draw.number(1e10, 5e10)
    return call(draw.number(low, high) * peak / bandwidth, peak, bandwidth)


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=roofline.attainable_flops,
    returns=("the FLOPs per second",),
    cases=[
        Case("bound by memory", lambda draw: machine(draw, 0.2, 0.6)),
        Case("bound by calculation", lambda draw: machine(draw, 2.0, 5.0)),
        Case("an A100, half precision, one token", lambda draw: call(1.0, 312e12, 1.555e12), hidden=True),
        Case("deep under the slope", lambda draw: machine(draw, 0.001, 0.01), hidden=True),
        Case("far beyond the bend", lambda draw: machine(draw, 20.0, 90.0), hidden=True),
        Case("nothing is calculated", lambda draw: call(0.0, 5e11, 2e10), hidden=True),
    ],
)


@exercise.misconception("""
    Your result is never below the peak, even where the bytes arrive too slowly for it. Two limits hold at once: which
    of them is felt, the higher or the lower?
""")
def the_higher_limit(intensity, peak_flops, bandwidth):
    return max(peak_flops, intensity * bandwidth)


@exercise.misconception("""
    Your result is the peak, whatever the intensity. One token times a large matrix waits for the matrix to arrive.
""")
def always_the_peak(intensity, peak_flops, bandwidth):
    return peak_flops


@exercise.misconception("""
    Your result rises with the intensity for ever, beyond what the machine can calculate.
""")
def always_the_slope(intensity, peak_flops, bandwidth):
    return intensity * bandwidth


@exercise.misconception("""
    You add the two limits. A machine that is held up by either of them is not helped by the other.
""")
def limits_added(intensity, peak_flops, bandwidth):
    return peak_flops + intensity * bandwidth


@exercise.misconception("""
    You add the times of fetching and of calculating, as if the machine did one after the other. The roofline assumes
    that both go on at once, so the slower one decides. (The sum is a useful pessimist's model.)
""")
def one_after_the_other(intensity, peak_flops, bandwidth):
    slope = intensity * bandwidth
    return peak_flops * slope / (peak_flops + slope)


@exercise.misconception("""
    You divide the bandwidth by the intensity. Look at the units: bytes per second times FLOPs per byte are FLOPs per
    second.
""")
def divided_by_the_intensity(intensity, peak_flops, bandwidth):
    return min(peak_flops, bandwidth / intensity if intensity else peak_flops)


@exercise.misconception("""
    Your result is the intensity at which the roof bends, peak / bandwidth. Asked for is the height of the roof over the
    intensity that is given.
""")
def where_the_roof_bends(intensity, peak_flops, bandwidth):
    return peak_flops / bandwidth


@exercise.misconception("""
    Your result is a share of the peak, between 0 and 1. Asked for are FLOPs per second.
""")
def share_of_the_peak(intensity, peak_flops, bandwidth):
    return min(1.0, intensity * bandwidth / peak_flops)


@exercise.alternative
def by_a_branch(intensity, peak_flops, bandwidth):
    if intensity < peak_flops / bandwidth:
        return bandwidth * intensity
    return peak_flops


@exercise.alternative
def by_numpy(intensity, peak_flops, bandwidth):
    return np.minimum(peak_flops, intensity * bandwidth)


@exercise.alternative
def by_the_time_of_a_byte(intensity, peak_flops, bandwidth):
    seconds = max(1 / bandwidth, intensity / peak_flops)  # for one byte and all that is done with it
    return intensity / seconds
