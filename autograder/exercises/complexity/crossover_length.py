"""Check `crossover_length`: from where on the quadratic part of a block costs more than the rest."""

import math

from autograder.exercise import Case, Exercise
from autograder.exercises.complexity import CHAPTER
from autograder.exercises.complexity.sizes import narrow, widths
from autograder.program import call
from course_lib import costs

exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=costs.crossover_length,
    returns=("the length",),
    cases=[
        Case("BERT base", lambda draw: call(768, 3072)),
        Case("all sizes differ", lambda draw: call(*widths(draw))),
        Case("a narrow hidden layer", lambda draw: call(*narrow(draw)), hidden=True),
        Case("other sizes", lambda draw: call(*widths(draw)), hidden=True),
    ],
)


@exercise.misconception("""
    Your length is d_model, as document B's sentence on "n > d" suggests. Put it into both sides: at n = d_model the
    products cost 4 d_model³, and the projections alone 8 d_model³.
""")
def at_the_model_width(d_model, d_ff):
    return d_model


@exercise.misconception("""
    Your length is d_model + 1, as document B's sentence on "n > d" suggests. Put it into both sides: where n equals
    d_model the products cost 4 d_model³, and the projections alone 8 d_model³.
""")
def just_above_the_model_width(d_model, d_ff):
    return d_model + 1


@exercise.misconception("""
    Your length is one too short: at 2 d_model + d_ff both sides cost exactly the same. The contract asks for the first
    length at which the quadratic part costs **more**.
""")
def where_both_are_equal(d_model, d_ff):
    return 2 * d_model + d_ff


@exercise.misconception("""
    Your length is where the products overtake the feed-forward network. The four projections are linear in n too and
    stand on the same side.
""")
def projections_forgotten(d_model, d_ff):
    return d_ff + 1


@exercise.misconception("""
    Your length is where the products overtake the projections. The feed-forward network is linear in n too and stands
    on the same side.
""")
def feed_forward_forgotten(d_model, d_ff):
    return 2 * d_model + 1


@exercise.misconception("""
    Your length does not depend on d_ff: 4 d_model is built in. That gives 6 d_model, right for the usual width alone.
""")
def six_times_the_width(d_model, d_ff):
    return 6 * d_model + 1


@exercise.misconception("""
    Your length is twice too long: there is only one product in your quadratic part, or one side is counted in FLOPs and
    the other in multiply-adds. Scores and mixing both cost 2 n² d_model.
""")
def one_product(d_model, d_ff):
    return 2 * (2 * d_model + d_ff) + 1


@exercise.misconception("""
    Your length is twice too short: your linear part is counted in multiply-adds and the quadratic one in FLOPs.
""")
def linear_part_halved(d_model, d_ff):
    return (2 * d_model + d_ff) // 2 + 1


@exercise.misconception("""
    Your feed-forward network has one matrix. There are two, and the second one doubles its share of the length.
""")
def one_feed_forward_matrix(d_model, d_ff):
    return 2 * d_model + d_ff // 2 + 1


@exercise.misconception("""
    Your result is a float, the point where both curves meet. Asked for is a length: the first whole number beyond it.
""")
def left_as_a_float(d_model, d_ff):
    return (8 * d_model**2 + 4 * d_model * d_ff) / (4 * d_model)


@exercise.alternative
def by_search(d_model, d_ff):
    n = 1
    while 4 * n * n * d_model <= 8 * n * d_model**2 + 4 * n * d_model * d_ff:
        n += 1
    return n


@exercise.alternative
def by_bisection(d_model, d_ff):
    low, high = 0, 100 * (d_model + d_ff)
    while high - low > 1:
        middle = (low + high) // 2
        quadratic = 4 * middle**2 * d_model
        if 2 * quadratic > costs.block_flops(middle, d_model, d_ff):
            high = middle
        else:
            low = middle
    return high


@exercise.alternative
def by_floor(d_model, d_ff):
    return math.floor((8 * d_model + 4 * d_ff) / 4) + 1
