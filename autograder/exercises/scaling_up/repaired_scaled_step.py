"""Check `repaired_scaled_step`: a bug hunt. The order of unscaling, looking and clipping decides."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.scaling_up import CHAPTER
from autograder.program import Program, call
from course_lib.training import mixed_precision

SCALE = 1024.0
DIGITS = {"float32": 1e-4}


def drawn(draw: Draw, norm: float, max_norm: float, rate: float = 0.5) -> Program:
    """Draw weights near zero, so that every part of the step shows, and a scaled gradient of a known norm."""
    size = draw.integer(5, 9)
    direction = draw.normal(size)
    grad = (SCALE * norm * direction / direction.norm()).half()
    return call(0.1 * draw.normal(size), grad, SCALE, max_norm, rate)


def spoiled(draw: Draw, value: float) -> Program:
    """Put one bad entry into the gradient."""
    grad = draw.normal(6)
    grad[draw.integer(0, 5)] = value
    return call(draw.normal(6), grad.half(), SCALE, 1.0, 0.5)


def tiny(draw: Draw) -> Program:
    """Draw a gradient that float16 holds only while it is scaled."""
    grad = (draw.integers(1, 30, 7) * 2.0**-24).half()
    return call(1e-8 * draw.normal(7), grad, SCALE, 1.0, 1.0)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=mixed_precision.repaired_scaled_step,
    returns=("the master weights", "stepped"),
    tolerance=DIGITS,
    cases=[
        Case("a short gradient, not to be clipped", lambda draw: drawn(draw, draw.number(0.3, 0.8), 1.0)),
        Case("a long gradient, to be clipped", lambda draw: drawn(draw, draw.number(2.0, 5.0), 1.0)),
        Case("an infinite entry", lambda draw: spoiled(draw, float("inf"))),
        Case("a gradient that float16 holds only while it is scaled", tiny),
        Case("NaN", lambda draw: spoiled(draw, float("nan")), hidden=True),
        Case("another threshold", lambda draw: drawn(draw, draw.number(1.1, 1.4), 0.7, 0.3), hidden=True),
        Case("a threshold that is far away", lambda draw: drawn(draw, draw.number(2.0, 5.0), 50.0), hidden=True),
        Case(
            "a gradient of zero", lambda draw: call(draw.normal(5), torch.zeros(5).half(), 64.0, 1.0, 0.1), hidden=True
        ),
    ],
)


def step(master, grad, scale, max_norm, rate, *, clip_first, in_half, skip):
    """Take the step with each of its three faults mended or left."""
    shorter = min(1.0, max_norm / (float(grad.float().norm()) + 1e-12)) if clip_first else 1.0
    clipped = grad.float() * shorter
    unscaled = (clipped.to(grad.dtype) / scale).float() if in_half else clipped / scale
    if not grad.float().isfinite().all():
        if skip:
            return master.clone(), False
        return master - rate * unscaled, True
    if not clip_first:
        unscaled = unscaled * min(1.0, max_norm / (float(unscaled.norm()) + 1e-12))
    return master - rate * unscaled, True


@exercise.misconception("""
    This is the function as you found it: none of its faults is mended yet. Take a gradient whose unscaled norm is
    half of `max_norm`, and print by how much the weights move; then one with an infinite entry.
""")
def starter_unchanged(master, grad, scale, max_norm, rate):
    return step(master, grad, scale, max_norm, rate, clip_first=True, in_half=True, skip=False)


@exercise.misconception("""
    The gradient is clipped while the scale is still on it: its norm is then 1024 times too large, nearly every
    gradient is "too long", and the steps shrink to almost nothing. What must come first, for `max_norm` to mean what
    it says?
""")
def clipped_before_unscaling(master, grad, scale, max_norm, rate):
    return step(master, grad, scale, max_norm, rate, clip_first=True, in_half=False, skip=True)


@exercise.misconception("""
    The division by the scale is done in float16, where the small numbers that the scale has saved become 0. Divide in
    the dtype of the master copy.
""")
def unscaled_in_half(master, grad, scale, max_norm, rate):
    return step(master, grad, scale, max_norm, rate, clip_first=False, in_half=True, skip=True)


@exercise.misconception("""
    A gradient with an infinite entry still reaches the weights: they are NaN or infinite from this step on, and no
    later step can mend that. Such a step leaves the master copy alone and says so by its second result.
""")
def overflow_not_skipped(master, grad, scale, max_norm, rate):
    return step(master, grad, scale, max_norm, rate, clip_first=False, in_half=False, skip=False)


@exercise.misconception("""
    An overflow is skipped now. Two faults are left: the clipping sees a gradient that is still scaled, and the
    division by the scale happens in float16.
""")
def only_the_skip_mended(master, grad, scale, max_norm, rate):
    return step(master, grad, scale, max_norm, rate, clip_first=True, in_half=True, skip=True)


@exercise.misconception("""
    Clipping comes after unscaling now. Two faults are left: the division happens in float16, and an infinite entry
    still reaches the weights.
""")
def only_the_order_mended(master, grad, scale, max_norm, rate):
    return step(master, grad, scale, max_norm, rate, clip_first=False, in_half=True, skip=False)


@exercise.misconception("""
    The division is done in float32 now. Two faults are left: the clipping sees a gradient that is still scaled, and
    an infinite entry still reaches the weights.
""")
def only_the_dtype_mended(master, grad, scale, max_norm, rate):
    return step(master, grad, scale, max_norm, rate, clip_first=True, in_half=False, skip=False)


@exercise.misconception("""
    Your step always has the length `max_norm`, also where the gradient was shorter. Clipping only shortens: the
    factor is at most 1.
""")
def always_stretched(master, grad, scale, max_norm, rate):
    unscaled = grad.float() / scale
    norm = float(unscaled.norm())
    if not unscaled.isfinite().all():
        return master.clone(), False
    return master - rate * unscaled * (max_norm / norm if norm else 1.0), True


@exercise.misconception("""
    You clip every entry by itself. `max_norm` is a limit on the length of the whole gradient; cutting single entries
    turns its direction.
""")
def entries_clipped(master, grad, scale, max_norm, rate):
    unscaled = grad.float() / scale
    if not unscaled.isfinite().all():
        return master.clone(), False
    return master - rate * unscaled.clamp(-max_norm, max_norm), True


@exercise.misconception("""
    Your gradient is never clipped: `max_norm` has no influence.
""")
def never_clipped(master, grad, scale, max_norm, rate):
    return step(master, grad, scale, float("inf"), rate, clip_first=False, in_half=False, skip=True)


@exercise.alternative
def by_the_framework(master, grad, scale, max_norm, rate):
    weight = torch.nn.Parameter(master.clone())
    unscaled = grad.to(torch.float32) / scale
    if not torch.isfinite(unscaled).all():
        return master.clone(), False
    weight.grad = unscaled
    torch.nn.utils.clip_grad_norm_([weight], max_norm)
    torch.optim.SGD([weight], lr=rate).step()
    return weight.detach(), True


@exercise.alternative
def look_first(master, grad, scale, max_norm, rate):
    if not grad.isfinite().all():
        return master, False
    gradient = grad.double() / scale
    length = gradient.norm()
    if length > max_norm:
        gradient = gradient * (max_norm / length)
    return (master.double() - rate * gradient).float(), True
