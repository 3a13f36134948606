"""Check `loss_scale_step`: undo a loss scale, skip what overflowed, and let the scale find its own height."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.scaling_up import CHAPTER
from autograder.program import Program, Run, call
from course_lib.training import mixed_precision

OVERFLOW = 65504.0  # the largest number of float16
SCALES = (256.0, 1024.0, 4096.0)
TINY = 2.0**-24  # the smallest number of float16 above zero


def gradients(draw: Draw, spread: float = 1.0) -> list[torch.Tensor]:
    """Draw three gradients of different shapes in half precision."""
    a, b, c, d = draw.sizes(4)
    return [draw.normal(*shape, scale=spread) for shape in ((a, b), (c,), (d, a))]


def scale(draw: Draw) -> float:
    """Draw a power of two."""
    return SCALES[draw.integer(0, 2)]


def spoiled(draw: Draw, value: float, place: int) -> Program:
    """Put one bad entry into one of the gradients, in the middle of a run of good steps."""
    grads = gradients(draw)
    grads[place].view(-1)[draw.integer(0, grads[place].numel() - 1)] = value
    return call(grads, scale(draw), draw.integer(3, 40), 50)


def tiny(draw: Draw) -> Program:
    """Draw gradients near the smallest number of float16: divided in float16, nothing is left of them."""
    grads = [TINY * draw.integers(1, 60, 5), TINY * draw.integers(1, 60, 3, 2)]
    return call([grad.half() for grad in grads], 1024.0, draw.integer(2, 9), 100)


def huge(draw: Draw) -> Program:
    """Draw finite gradients whose sum is beyond float16."""
    return call([draw.uniform(6, 4, low=30000.0, high=60000.0)], scale(draw), draw.integer(2, 9), 100)


def opposite(draw: Draw) -> Program:
    """Put both infinities into one gradient."""
    grads = gradients(draw)
    grads[0].view(-1)[0], grads[0].view(-1)[1] = float("inf"), -float("inf")
    return call(grads, scale(draw), draw.integer(3, 40), 50)


def pair_comes(program: Program, found: Run) -> str | None:
    """Give a sentence when gradients came although the step should be skipped."""
    grads = program.steps[0].args[0]
    result = found.outcomes[0]
    bad = not all(bool(grad.isfinite().all()) for grad in grads)
    if bad and isinstance(result, (list, tuple)) and result and result[0] is not None:
        return "a gradient has an entry that is not finite, so the step must be skipped: the first result is None"
    return None


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=mixed_precision.loss_scale_step,
    returns=("the unscaled gradients", "the scale", "good_steps"),
    properties=[pair_comes],
    cases=[
        Case("a good step", lambda draw: call(gradients(draw), scale(draw), draw.integer(3, 40), 50), dtype="float16"),
        Case("an infinite entry", lambda draw: spoiled(draw, float("inf"), 1), dtype="float16"),
        Case("the last good step before the scale grows", lambda draw: call(gradients(draw), scale(draw), 6, 7)),
        Case("gradients near the end of float16", tiny, dtype="float16"),
        Case("NaN in the last gradient", lambda draw: spoiled(draw, float("nan"), 2), dtype="float16", hidden=True),
        Case("minus infinity", lambda draw: spoiled(draw, -float("inf"), 0), dtype="float16", hidden=True),
        Case("both infinities", opposite, dtype="float16", hidden=True),
        Case("large and finite", huge, dtype="float16", hidden=True),
        Case("the usual interval", lambda draw: call(gradients(draw), scale(draw), 1999), dtype="float16", hidden=True),
        Case("one step before that", lambda draw: call(gradients(draw), scale(draw), 1998), hidden=True),
        Case(
            "an infinity at the step of growth",
            lambda draw: call([draw.normal(4), draw.array([1.0, float("inf")])], scale(draw), 9, 10),
            dtype="float16",
            hidden=True,
        ),
        Case("bfloat16", lambda draw: call(gradients(draw), 512.0, 4, 9), dtype="bfloat16", hidden=True),
        Case("float64", lambda draw: call(gradients(draw), 512.0, 4, 9), dtype="float64", hidden=True),
    ],
)


def finite(grads):
    return all(bool(grad.isfinite().all()) for grad in grads)


def wide(grad):
    return grad.to(torch.promote_types(grad.dtype, torch.float32))


def step(grads, scale, good_steps, growth_interval, *, good=None, unscale=None, down=0.5, reset=0, late=0, regrow=0):
    """Take the step with each of its parts left as it is or changed."""
    unscale = unscale or (lambda grad, factor: wide(grad) / factor)
    if not (finite(grads) if good is None else good(grads)):
        return None, scale * down, reset
    unscaled = [unscale(grad, scale) for grad in grads]
    if good_steps + 1 == growth_interval + late:
        return unscaled, scale * 2, growth_interval if regrow else 0
    return unscaled, scale, good_steps + 1


@exercise.misconception("""
    There is an entry that is not finite, and your step is taken all the same: infinity would go into every weight. The
    one purpose of looking is that such a step is skipped, so the first result is then None.
""")
def overflow_taken(grads, scale, good_steps, growth_interval=2000):
    if finite(grads):
        return step(grads, scale, good_steps, growth_interval)
    return [wide(grad) / scale for grad in grads], scale * 0.5, 0


@exercise.misconception("""
    Infinities are found, NaN is not. `0 · inf` and `inf - inf` are NaN, so an overflow often shows up as one. Which
    function of PyTorch tells that a number is neither?
""")
def only_infinities(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, good=lambda g: not any(x.isinf().any() for x in g))


@exercise.misconception("""
    NaN is found, infinity is not. In float16 everything beyond 65504 becomes infinity first; NaN comes later, when
    it is used.
""")
def only_nan(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, good=lambda g: not any(x.isnan().any() for x in g))


@exercise.misconception("""
    Plus infinity is found, minus infinity is not. A gradient can be too large in both directions.
""")
def only_one_infinity(grads, scale, good_steps, growth_interval=2000):
    def good(g):
        return not any((x == float("inf")).any() or x.isnan().any() for x in g)

    return step(grads, scale, good_steps, growth_interval, good=good)


@exercise.misconception("""
    Your code looks into the first gradient alone. A model has one per parameter, and the step is one step: an
    overflow in any of them spoils it.
""")
def first_gradient_alone(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, good=lambda g: finite(g[:1]))


@exercise.misconception("""
    All gradients of this case are finite, yet you skip the step: a **sum** of large float16 numbers overflows even
    when none of them did. Look at the entries, not at their sum.
""")
def sum_is_looked_at(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, good=lambda g: all(bool(x.sum().isfinite()) for x in g))


@exercise.misconception("""
    You set the bad entries to 0 and go on. What those entries should have been is unknown, and the rest was computed
    with a scale that is too high, which will overflow again. The whole step is skipped, and the scale halved.
""")
def bad_entries_zeroed(grads, scale, good_steps, growth_interval=2000):
    unscaled, _, good = step([torch.nan_to_num(g, 0, 0, 0) for g in grads], scale, good_steps, growth_interval)
    return unscaled, scale, good


@exercise.misconception("""
    After an overflow your scale stays as it is, so the next step will most likely overflow again, and the next. Halve
    it.
""")
def never_shrinks(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, down=1.0)


@exercise.misconception("""
    After an overflow your scale grows. Overflow means that the factor was too **large** for these gradients.
""")
def grows_after_overflow(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, down=2.0)


@exercise.misconception("""
    After an overflow you go on counting where you were. The interval asks for so many good steps **in a row**; with
    an old count the scale grows again much too soon.
""")
def count_goes_on(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, reset=good_steps)


@exercise.misconception("""
    A step that overflowed counts as a good one in your code. It starts the count again, at 0.
""")
def bad_step_counts(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, reset=good_steps + 1)


@exercise.misconception("""
    You divide in the gradients' own float16. What the scale has saved is lost in that very moment: 2⁻²⁴ is the
    smallest number there is, and divided by 1024 it is 0. Which dtype has room for the quotient?
""")
def unscaled_in_half(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, unscale=lambda g, s: wide(g / s))


@exercise.misconception("""
    The gradients that you return are still scaled: with a scale of 1024 the optimizer would take steps a thousand
    times too long. Divide by the factor that was on the loss.
""")
def never_unscaled(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, unscale=lambda g, s: wide(g))


@exercise.misconception("""
    You multiply by the scale once more. The loss was multiplied by it, and so were the gradients; unscaling takes it
    off again.
""")
def scaled_again(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, unscale=lambda g, s: wide(g) * s)


@exercise.misconception("""
    In the step in which the scale grows, you divide by the **new** scale. These gradients were made with the old one;
    the new one is for the next step.
""")
def unscaled_by_the_new_scale(grads, scale, good_steps, growth_interval=2000):
    unscaled, new, good = step(grads, scale, good_steps, growth_interval)
    return unscaled and [wide(grad) / new for grad in grads], new, good


@exercise.misconception("""
    This step makes the interval full, and your scale does not grow: it comes one step too late, or never. Count this
    step first, and then compare.
""")
def one_step_late(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, late=1)


@exercise.misconception("""
    When the scale has grown, your count does not start again, so it will never be equal to the interval again (or grow
    at every step from now on). After growth the count is 0.
""")
def count_not_reset_by_growth(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, regrow=1)


@exercise.misconception("""
    Your scale doubles after every good step. It would then overflow every few steps, and each overflow costs a whole
    step; wait for `growth_interval` good ones in a row.
""")
def grows_at_every_step(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, good_steps + 1)


@exercise.misconception("""
    Your gradients are in float16 again after the division. The optimizer works in float32, and float16 has no room
    for what you just recovered.
""")
def returned_in_half(grads, scale, good_steps, growth_interval=2000):
    return step(grads, scale, good_steps, growth_interval, unscale=lambda g, s: (wide(g) / s).to(g.dtype))


@exercise.alternative
def with_a_loop(grads, scale, good_steps, growth_interval=2000):
    unscaled = []
    for grad in grads:
        if torch.isinf(grad).any() or torch.isnan(grad).any():
            return None, scale / 2, 0
        unscaled.append(grad.double() / scale if grad.dtype == torch.float64 else grad.float() * (1 / scale))
    good_steps += 1
    if good_steps >= growth_interval:
        scale, good_steps = scale * 2, 0
    return unscaled, scale, good_steps


@exercise.alternative
def unscale_first_and_look_then(grads, scale, good_steps, growth_interval=2000):
    unscaled = tuple(grad.to(torch.promote_types(grad.dtype, torch.float32)).div(scale) for grad in grads)
    if not all(torch.isfinite(grad).all() for grad in unscaled):
        return None, scale * 0.5, 0
    grow = (good_steps + 1) % growth_interval == 0
    return unscaled, scale * (2 if grow else 1), 0 if grow else good_steps + 1


@exercise.alternative
def by_the_largest_entry(grads, scale, good_steps, growth_interval=2000):
    largest = torch.stack([grad.abs().max().double() for grad in grads]).max()
    if not largest < float("inf"):
        return None, 0.5 * scale, 0
    wider = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
    unscaled = [grad.to(wider.get(grad.dtype, grad.dtype)) / scale for grad in grads]
    return (unscaled, 2 * scale, 0) if good_steps == growth_interval - 1 else (unscaled, scale, good_steps + 1)
