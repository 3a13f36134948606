"""Check `initial_loss`: the loss of a model that knows nothing."""

import math

import numpy as np
import torch

from autograder.exercise import Case, Exercise
from autograder.exercises.training_in_practice import CHAPTER
from autograder.program import call
from course_lib.training import initialization

exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=initialization.initial_loss,
    returns=("the loss",),
    tolerance=1e-5,
    cases=[
        Case("a small vocabulary", lambda draw: call(draw.integer(20, 200))),
        Case("a large vocabulary", lambda draw: call(draw.integer(20_000, 200_000)), hidden=True),
        Case("two tokens", lambda draw: call(2), hidden=True),
        Case("vocabularies of all sizes", lambda draw: call(draw.integer(3, 3000)), hidden=True),
    ],
)


@exercise.misconception("""
    Your loss is in bits: a logarithm to the base 2. PyTorch's cross-entropy uses the natural one.
""")
def in_bits(vocab_size):
    return math.log2(vocab_size)


@exercise.misconception("""
    Your logarithm has the base 10. Cross-entropy uses the natural one, `math.log`.
""")
def base_ten(vocab_size):
    return math.log10(vocab_size)


@exercise.misconception("""
    You return the probability of the right token. The loss is minus its logarithm.
""")
def probability(vocab_size):
    return 1 / vocab_size


@exercise.misconception("""
    Your loss is negative. The logarithm of a probability is negative; the loss is **minus** that.
""")
def sign(vocab_size):
    return -math.log(vocab_size)


@exercise.misconception("""
    You leave the right token out and spread the probability over the others. A fresh model does not know which one is
    right: it gives each of all V tokens 1/V.
""")
def one_token_less(vocab_size):
    return math.log(vocab_size - 1)


@exercise.misconception("""
    You return the perplexity of a model that knows nothing, the number of tokens it wavers between. The loss is its
    logarithm.
""")
def perplexity(vocab_size):
    return float(vocab_size)


@exercise.misconception("""
    You return the share of wrong answers. A loss of cross-entropy measures how little probability the right token gets,
    and grows without end.
""")
def error_rate(vocab_size):
    return 1 - 1 / vocab_size


@exercise.alternative
def from_even_logits(vocab_size):
    return torch.nn.functional.cross_entropy(torch.zeros(1, vocab_size, dtype=torch.float64), torch.zeros(1).long())


@exercise.alternative
def from_the_probability(vocab_size):
    return -np.log(1 / vocab_size)


@exercise.alternative
def as_an_entropy(vocab_size):
    even = np.full(vocab_size, 1 / vocab_size)
    return -(even * np.log(even)).sum()
