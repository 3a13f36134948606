"""Check `bubble_fraction`: the share of the time in which a pipeline's stages wait."""

from fractions import Fraction
from functools import partial

from autograder.exercise import Case, Exercise
from autograder.exercises.scaling_up import CHAPTER
from autograder.exercises.scaling_up.pipeline_sizes import one_microbatch, one_stage, two_counts
from autograder.program import call
from course_lib.training import pipeline

exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=pipeline.bubble_fraction,
    returns=("the share",),
    cases=[
        Case("4 stages and 8 microbatches", lambda draw: call(4, 8)),
        Case("two counts", partial(two_counts, most=20)),
        Case("one stage", one_stage, hidden=True),
        Case("one microbatch", one_microbatch, hidden=True),
        Case("many microbatches", lambda draw: call(draw.integer(3, 9), draw.integer(100, 200)), hidden=True),
        Case("other counts", partial(two_counts, most=20), hidden=True),
    ],
)


@exercise.misconception("""
    You give the waiting time as a share of the **ideal** time, (s - 1) / m, which some papers do; it is above 1 when
    there are more stages than microbatches. The contract asks for the share of the whole time.
""")
def share_of_the_ideal_time(stages, microbatches):
    return (stages - 1) / microbatches


@exercise.misconception("""
    The microbatches have no influence on your share. With one microbatch all stages but one wait; what do they do
    meanwhile when there are ten?
""")
def no_microbatches(stages, microbatches):
    return (stages - 1) / stages


@exercise.misconception("""
    Your pipeline of one stage waits, and it has nobody to wait for. The last stage waits for the stages **before**
    it: how many are those?
""")
def stages_for_gaps(stages, microbatches):
    return stages / (microbatches + stages)


@exercise.misconception("""
    That is the share of the time in which a stage **works**. The bubble is the rest.
""")
def share_at_work(stages, microbatches):
    return microbatches / (microbatches + stages - 1)


@exercise.misconception("""
    The schedule takes m + s - 1 ticks, one less than you have: the last microbatch enters in tick m - 1, counted from
    0, and leaves after s - 1 more.
""")
def one_tick_too_many(stages, microbatches):
    return (stages - 1) / (microbatches + stages)


@exercise.misconception("""
    Stages and microbatches have changed places. More microbatches should make the bubble smaller; yours grows.
""")
def roles_exchanged(stages, microbatches):
    return (microbatches - 1) / (microbatches + stages - 1)


@exercise.misconception("""
    Your result is a count of ticks. The contract asks for a share between 0 and 1.
""")
def ticks_not_share(stages, microbatches):
    return stages - 1


@exercise.misconception("""
    Your share is in percent. The contract asks for a number between 0 and 1.
""")
def in_percent(stages, microbatches):
    return 100 * (stages - 1) / (microbatches + stages - 1)


@exercise.alternative
def one_minus_work(stages, microbatches):
    return 1 - microbatches / (stages + microbatches - 1)


@exercise.alternative
def by_counting_cells(stages, microbatches):
    ticks = stages + microbatches - 1
    busy = sum(0 <= tick - stage < microbatches for tick in range(ticks) for stage in range(stages))
    return (ticks * stages - busy) / (ticks * stages)


@exercise.alternative
def with_fractions(stages, microbatches):
    return float(Fraction(stages - 1, microbatches + stages - 1))
