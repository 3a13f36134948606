"""Check `master_weight_update`: a step on float32 weights with a half-precision gradient, and the copy for the next."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.scaling_up import CHAPTER
from autograder.program import Program, call
from course_lib.training import mixed_precision

DIGITS = {"float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3}
RATE = 1e-3


def drawn(draw: Draw, near: float, step: float, dtype: torch.dtype = torch.float16, rate: float = RATE) -> Program:
    """Draw weights of one size and a gradient whose steps have another."""
    rows, columns = draw.sizes(2, low=3)
    master = near * draw.uniform(rows, columns, low=0.9, high=1.9)
    grad = (
        step
        / rate
        * draw.uniform(rows, columns, low=0.5, high=1.5)
        * draw.array(draw.random.choice([-1.0, 1.0], (rows, columns)))
    )
    return call(master, grad.to(dtype), rate)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=mixed_precision.master_weight_update,
    returns=("the master weights", "the copy"),
    tolerance=DIGITS,
    cases=[
        Case("steps of a tenth of the weight", lambda draw: drawn(draw, 1.0, 0.1)),
        Case("steps too small for float16 beside their weight", lambda draw: drawn(draw, 1.0, 1e-4)),
        Case("steps below the smallest float16", lambda draw: drawn(draw, 1e-7, 1e-8), hidden=True),
        Case("a gradient of ones", lambda draw: call(draw.normal(7), torch.ones(7).half(), 3e-4), hidden=True),
        Case("steps as large as the weight", lambda draw: drawn(draw, 0.02, 0.02, rate=0.3), hidden=True),
        Case("bfloat16", lambda draw: drawn(draw, 1.0, 1e-3, torch.bfloat16), hidden=True),
        Case("bfloat16, weights of a trained layer", lambda draw: drawn(draw, 0.02, 1e-4, torch.bfloat16), hidden=True),
        Case(
            "one number", lambda draw: call(draw.normal(1), draw.normal(1).half(), draw.number(0.1, 0.3)), hidden=True
        ),
    ],
)


def correct(master, grad, rate):
    updated = master - rate * grad.float()
    return updated, updated.to(grad.dtype)


@exercise.misconception("""
    You update the half-precision weights, and the master copy is only a float32 picture of them. Beside a weight of 1
    float16 has no number between 0.99951 and 1, so a step of 0.0001 ends where it began. Which of the two must the
    step be taken on?
""")
def step_on_the_copy(master, grad, rate):
    half = master.to(grad.dtype) - rate * grad
    return half.float(), half


@exercise.misconception("""
    Your master copy is rounded to half precision in every step: a float32 tensor that holds only float16 numbers. The
    small steps that it should collect are rounded away one by one.
""")
def master_rounded(master, grad, rate):
    copy = correct(master, grad, rate)[1]
    return copy.float(), copy


@exercise.misconception("""
    The product with the rate is still taken in half precision: `rate * grad` has the dtype of the gradient, whatever
    it is added to later. Where steps are tiny they are 0 before they reach the master copy. What has to be widened
    first?
""")
def product_in_half(master, grad, rate):
    updated = master - rate * grad
    return updated, updated.to(grad.dtype)


@exercise.misconception("""
    Your weights go uphill: the gradient is added. A step goes against it.
""")
def uphill(master, grad, rate):
    return correct(master, -grad, rate)


@exercise.misconception("""
    The rate has no influence on your step.
""")
def rate_ignored(master, grad, rate):
    return correct(master, grad, 1.0)


@exercise.misconception("""
    Your copy is one of the weights **before** the step. The next forward pass would run on old weights, one step
    behind for ever.
""")
def old_copy(master, grad, rate):
    return correct(master, grad, rate)[0], master.to(grad.dtype)


@exercise.misconception("""
    Your copy is in float32. It is what the next forward and backward pass run on, and the whole point is that they
    run in the gradient's dtype.
""")
def copy_not_rounded(master, grad, rate):
    updated = correct(master, grad, rate)[0]
    return updated, updated.clone()


@exercise.misconception("""
    Your copy is always float16. The half-precision dtype of this training is that of the gradient, which here is
    bfloat16.
""")
def always_float16(master, grad, rate):
    updated = correct(master, grad, rate)[0]
    return updated, updated.half()


@exercise.misconception("""
    Your master copy comes back in half precision. It has to stay float32: the copy is the second result.
""")
def master_in_half(master, grad, rate):
    copy = correct(master, grad, rate)[1]
    return copy, copy


@exercise.misconception("""
    The two results are in the other order: the master copy first, then its half-precision copy.
""")
def copy_first(master, grad, rate):
    return correct(master, grad, rate)[::-1]


@exercise.misconception("""
    Your master copy is as it was, and the step is in the half-precision copy alone. The next step starts from the
    master copy, so this one is forgotten.
""")
def master_left_behind(master, grad, rate):
    return master.clone(), correct(master, grad, rate)[1]


@exercise.misconception("""
    You step on the master copy, and then again on its half-precision copy. The copy is the rounded master copy and
    nothing else.
""")
def stepped_twice(master, grad, rate):
    updated, copy = correct(master, grad, rate)
    return updated, copy - (rate * grad.float()).to(grad.dtype)


@exercise.alternative
def in_double(master, grad, rate):
    updated = (master.double() - grad.double() * rate).float()
    return updated, updated.type(grad.dtype)


@exercise.alternative
def on_a_clone(master, grad, rate):
    new = master.clone()
    new -= rate * grad.to(torch.float32)
    return [new, new.to(grad.dtype)]


@exercise.alternative
def with_alpha(master, grad, rate):
    updated = torch.sub(master, grad.to(master.dtype), alpha=rate)
    return updated, updated.to(dtype=grad.dtype)


@exercise.alternative
def by_the_optimizer(master, grad, rate):
    weight = torch.nn.Parameter(master.clone())
    weight.grad = grad.float()
    torch.optim.SGD([weight], lr=rate).step()
    return weight.detach(), weight.detach().to(grad.dtype)
