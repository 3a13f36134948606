"""Check `gelu`: the exact form is the definition, the tanh form passes."""

import math

import numpy as np
import torch

from autograder.compare import difference
from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.feed_forward import CHAPTER
from autograder.program import Program, Run, call
from course_lib import feed_forward
from course_lib.feed_forward import TANH_CUBIC

Array = np.ndarray
ALLOWED = 1e-3  # absolute: the tanh form is at most 4.7e-4 away, the sigmoid form up to 0.02
QUICK_FACTOR = 1.702  # of the sigmoid form, Hendrycks and Gimpel 2016, §2


def from_minus_four_to_four(draw: Draw) -> Program:
    """Walk through the region where all forms differ, at a random phase."""
    return call(draw.array(np.linspace(-4, 4, 33) + draw.number(0, 0.2)))


def batch(draw: Draw) -> Program:
    """Draw a batch of sequences."""
    return call(draw.normal(*draw.sizes(3), scale=2.0))


def far_from_zero(draw: Draw) -> Program:
    """Draw numbers at which the share is 0 or 1, together with small ones."""
    far = draw.random.uniform(10, 1000, 4)
    return call(draw.array(np.concatenate([-far, far, [0.0, 1e-3, -1e-3]])))


def within_a_thousandth(program: Program, run: Run) -> str | None:
    """Accept every form that lies within 1e-3 of the exact one, in the input's dtype."""
    (x,) = program.steps[0].args
    expected, came = feed_forward.gelu(x), run.outcomes[0]
    alike = isinstance(came, Array) and came.shape == expected.shape and came.dtype == expected.dtype
    if not alike:
        return difference(expected, came, "the result")
    distance = np.abs(came - expected)
    if np.isfinite(came).all() and distance.max() <= ALLOWED:
        return None
    worst = np.unravel_index(np.nan_to_num(distance, nan=np.inf).argmax(), x.shape)
    return f"gelu({x[worst]:.4g}) is {came[worst]:.5g}, but it should be {expected[worst]:.5g}, within 0.001"


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=feed_forward.gelu,
    returns=("the result",),
    forbids=["torch.nn.functional.gelu", "torch.nn.GELU"],
    forbids_because="this exercise asks for its formula; `math.erf` and `torch.erf` are welcome",
    cases=[
        Case("from -4 to 4", from_minus_four_to_four, judge=within_a_thousandth),
        Case("a batch of sequences", batch, judge=within_a_thousandth),
        Case("float32", from_minus_four_to_four, dtype="float32", judge=within_a_thousandth, hidden=True),
        Case("far from zero", far_from_zero, judge=within_a_thousandth, hidden=True),
    ],
)


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[float])(x).astype(x.dtype)


def _share(x: Array) -> Array:
    return (1 + _erf(x / math.sqrt(2))) / 2


def _sigmoid(x: Array) -> Array:
    return (1 + np.tanh(x / 2)) / 2


@exercise.misconception("""
    At -1 your function gives -0.269; GELU gives -0.159. Yours weights x by a sigmoid: that is SiLU, also called
    Swish, a cousin of GELU that you meet in `swiglu`. Here the weight is the share of a normal distribution below
    x.
""")
def silu(x):
    return x * _sigmoid(x)


@exercise.misconception("""
    This is x · sigmoid(1.702 x), which some models call QuickGELU: a sound idea, and CLIP was trained with it. It
    is up to 0.02 away from GELU, and a model trained with one does not like the other. Here the exact form is
    asked; the form with tanh is near enough (0.0005).
""")
def sigmoid_form(x):
    return x * _sigmoid(QUICK_FACTOR * x)


@exercise.misconception("""
    Your factor inside the sigmoid is √(2/π) ≈ 0.798, which belongs to the form with tanh. tanh(z) is
    2 sigmoid(2z) - 1, so the two forms cannot share a constant; and the sigmoid form, with its 1.702, would still
    be 0.02 away.
""")
def sigmoid_with_the_constant_of_tanh(x):
    return x * _sigmoid(math.sqrt(2 / math.pi) * x)


@exercise.misconception("""
    The form with tanh has the factor √(2/π) ≈ 0.798 in front of its bracket; yours is 1.702, which belongs to the
    form with a sigmoid.
""")
def tanh_with_the_constant_of_the_sigmoid(x):
    return x * (1 + np.tanh(QUICK_FACTOR * (x + TANH_CUBIC * x**3))) / 2


@exercise.misconception("""
    The form with tanh needs x³ in its bracket. Without the correction it is a few hundredths away; look where
    |x| is near 2.
""")
def cube_forgotten(x):
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * x)) / 2


@exercise.misconception("""
    The correction inside your tanh is 0.044715 · x², but it should be x³: the bracket must change its sign with x,
    or Φ(-x) is no longer 1 - Φ(x).
""")
def square_for_cube(x):
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + TANH_CUBIC * x**2))) / 2


@exercise.misconception("""
    Your function is 0 for every negative number: that is ReLU. GELU asks how large a share of the bell curve lies
    below x, and lets a little of a negative number through; its lowest value is about -0.17.
""")
def relu(x):
    return np.maximum(x, 0)


@exercise.misconception("""
    At 1 you get 0.921, and GELU is 0.841 there. The error function counts in other units than the bell curve: Φ(x)
    is (1 + erf(x/√2)) / 2. Is the √2 in your code?
""")
def root_of_two_forgotten(x):
    return x * (1 + _erf(x)) / 2


@exercise.misconception("""
    Your values lie between 0 and 1: this is Φ(x), the share itself. GELU multiplies x by its share.
""")
def share_alone(x):
    return _share(x)


@exercise.misconception("""
    Your result is twice as large as it should be: 1 + erf runs from 0 to 2, and a share runs from 0 to 1.
""")
def half_forgotten(x):
    return 2 * x * _share(x)


@exercise.misconception("""
    Your function goes to 0 on the right as well: you multiply by the bell curve φ(x), its height at x. Φ(x) is the
    area to the left of x, which grows to 1.
""")
def height_for_area(x):
    return x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


@exercise.misconception("""
    Your weight is the share **above** x: large positive numbers vanish and large negative ones pass. Which sign
    stands between 1 and erf?
""")
def share_above(x):
    return x * (1 - _share(x))


@exercise.misconception("""
    Your weight runs from -1 to 1, as erf does, so the function is even: it turns -2 into about +2. A share must be
    between 0 and 1; shift and halve.
""")
def plain_error_function(x):
    return x * _erf(x / math.sqrt(2))


@exercise.misconception("""
    `math.erf` takes one number, and x is an array. `np.vectorize(math.erf)` calls it for every entry;
    `torch.erf(torch.from_numpy(x)).numpy()` does it in one go.
""")
def one_number_at_a_time(x):
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


@exercise.misconception("""
    Your values are right, but they are float64 although x is float32. Two usual causes: `np.vectorize(math.erf)`
    returns Python's floats, which are float64, and `np.sqrt(2)` is a float64 number of NumPy. Bring the result back
    with `.astype(x.dtype)`, and use `math.sqrt(2)`.
""")
def widened_to_float64(x):
    return x * (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2


@exercise.alternative
def by_vectorized_erf(x):
    return 0.5 * x * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2)).astype(x.dtype))


@exercise.alternative
def by_torch_erf(x):
    return x * (1 + torch.erf(torch.from_numpy(x) / math.sqrt(2)).numpy()) / 2


@exercise.alternative
def by_the_normal_distribution(x):
    return (x * torch.special.ndtr(torch.from_numpy(x)).numpy()).astype(x.dtype)


@exercise.alternative
def by_a_loop(x):
    result = np.empty_like(x)
    for index, value in np.ndenumerate(x):
        result[index] = value * 0.5 * (1 + math.erf(float(value) / 2**0.5))
    return result


@exercise.alternative
def by_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@exercise.alternative
def by_tanh_factored(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * x * (1 + 0.044715 * x * x)))
