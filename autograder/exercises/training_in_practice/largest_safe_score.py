"""Check `largest_safe_score`: where exp overflows."""

import math

import numpy as np
import torch

from autograder.exercise import Case, Exercise
from autograder.exercises.training_in_practice import CHAPTER
from autograder.program import call
from course_lib.training import limits

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=limits.largest_safe_score,
    returns=("the score",),
    tolerance=5e-3,  # a search with the numbers that bfloat16 has ends at 88.5
    cases=[
        Case("float32", lambda draw: call(torch.float32)),
        Case("float16", lambda draw: call(torch.float16)),
        Case("bfloat16", lambda draw: call(torch.bfloat16), hidden=True),
        Case("float64", lambda draw: call(torch.float64), hidden=True),
    ],
)


@exercise.misconception("""
    You return the largest number of the dtype. That is what exp(score) must not exceed; which **score** has it as its
    exponential?
""")
def largest_number(dtype):
    return torch.finfo(dtype).max


@exercise.misconception("""
    You give every dtype the limit of float32, document B's 89. `dtype` decides: float16 ends at 65504, so at a far
    smaller score. Ask `torch.finfo(dtype)` for the largest number.
""")
def always_eighty_nine(dtype):
    return 89.0


@exercise.misconception("""
    Your result is off by a factor of about 1.44: you took the logarithm to the base 2, which is about the exponent of
    2^x. Softmax raises **e** to the score.
""")
def base_two(dtype):
    return math.log2(torch.finfo(dtype).max)


@exercise.misconception("""
    You took the logarithm to the base 10. Softmax raises e to the score, so the natural logarithm undoes it.
""")
def base_ten(dtype):
    return math.log10(torch.finfo(dtype).max)


@exercise.misconception("""
    You look at the other end: the smallest normal number, below which exp(−score) gets coarser and then becomes 0.
    That is harmless. It is the largest number that a large score runs into.
""")
def underflow(dtype):
    return -math.log(torch.finfo(dtype).tiny)


@exercise.misconception("""
    Your limit is half of the right one, as if scores were squared. exp(score) itself must stay below the largest
    number.
""")
def half(dtype):
    return math.log(torch.finfo(dtype).max) / 2


@exercise.misconception("""
    You use the precision, `eps`. It says how fine the numbers are near 1, not how large they get.
""")
def precision(dtype):
    return -math.log(torch.finfo(dtype).eps)


@exercise.alternative
def by_torch(dtype):
    return torch.tensor(torch.finfo(dtype).max, dtype=torch.float64).log()


@exercise.alternative
def by_bisection(dtype):
    low, high = 1.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        if torch.isinf(torch.tensor(middle, dtype=torch.float64).to(dtype).exp()):
            high = middle
        else:
            low = middle
    return low


@exercise.alternative
def by_table(dtype):
    largest = {torch.float16: 65504.0, torch.bfloat16: 3.3895e38, torch.float32: np.finfo(np.float32).max}
    return np.log(largest.get(dtype, np.finfo(np.float64).max))
