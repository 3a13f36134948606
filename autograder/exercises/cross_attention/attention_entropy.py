"""Check `attention_entropy`: how widely each query looks, in nats."""

import math

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.cross_attention import CHAPTER
from autograder.program import Program, call
from course_lib import alignment


def soft(draw: Draw, axes: int = 2) -> Program:
    """Draw weights that are all above 0."""
    return call((2 * draw.normal(*draw.sizes(axes))).softmax(-1))


def with_zeros(draw: Draw) -> Program:
    """Draw maps in which keys are hidden, one query sees one key and one sees nothing."""
    batch, queries, keys = draw.sizes(3, low=3)
    weights = draw.normal(batch, queries, keys).masked_fill(draw.mask(batch, queries, keys), -math.inf).softmax(-1)
    weights[0, 0] = 0
    weights[1, 1] = 0
    weights[1, 1, draw.integer(0, keys - 1)] = 1
    return call(weights)


def even(draw: Draw) -> Program:
    """Draw a map that shares evenly, over more and more keys."""
    queries, keys = draw.sizes(2, low=4)
    counts = torch.arange(queries).remainder(keys) + 1
    shares = torch.arange(keys) < counts[:, None]
    return call(draw.array((shares / counts[:, None]).double().numpy()))


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=alignment.attention_entropy,
    returns=("the entropy",),
    cases=[
        Case("a soft map", soft),
        Case("hidden keys, and a query that sees nothing", with_zeros),
        Case("heads and a batch", lambda draw: soft(draw, axes=4), hidden=True),
        Case("even shares", even, hidden=True),
        Case("a single row of weights", lambda draw: soft(draw, axes=1), hidden=True),
        Case("float64", with_zeros, hidden=True, dtype="float64"),
    ],
)


@exercise.misconception("""
    Where a weight is 0 your entropy is NaN: 0 · ln 0 is 0 · −∞ for a computer. Its limit is 0: a key without weight
    adds nothing.
""")
def nan_at_zero(weights):
    return -(weights * weights.log()).sum(-1)


@exercise.misconception("""
    You measure in bits. The natural logarithm gives nats: even shares over 4 keys have ln 4 ≈ 1.39, not 2.
""")
def in_bits(weights):
    return alignment.attention_entropy(weights) / math.log(2)


@exercise.misconception("""
    Your entropy is negative: logarithms of shares are. The minus in front is missing.
""")
def sign_missing(weights):
    return -alignment.attention_entropy(weights)


@exercise.misconception("""
    You sum over the queries. A query shares itself out over the keys, on the last axis; there the shares sum to 1.
""")
def over_the_queries(weights):
    return -torch.xlogy(weights, weights).sum(-2 if weights.ndim > 1 else -1)


@exercise.misconception("""
    Your result is one number. Each query has an entropy of its own; who wants a mean can take it afterwards.
""")
def averaged(weights):
    return alignment.attention_entropy(weights).mean()


@exercise.misconception("""
    You average over the keys where you should sum: the entropy comes out smaller by the number of keys.
""")
def mean_over_the_keys(weights):
    return -torch.xlogy(weights, weights).mean(-1)


@exercise.misconception("""
    You divide by the logarithm of the number of keys, so that even shares give 1. That is handy for comparing maps of
    different widths; here the answer is in nats.
""")
def share_of_the_maximum(weights):
    return alignment.attention_entropy(weights) / math.log(weights.shape[-1])


@exercise.misconception("""
    You give e to the entropy: how many keys a query looks at, so to say. A good number to read, but not what is asked.
""")
def number_of_keys(weights):
    return alignment.attention_entropy(weights).exp()


@exercise.misconception("""
    Your softmax takes the weights for scores. They are shares already; a second softmax makes them nearly even.
""")
def softmax_again(weights):
    return alignment.attention_entropy(weights.softmax(-1))


@exercise.misconception("""
    A small number is added to every weight before the logarithm is taken and the product too. That avoids the NaN and
    adds something for every hidden key; only the logarithm needs help.
""")
def padded_with_a_small_number(weights):
    shifted = weights + 1e-2
    return -(shifted * shifted.log()).sum(-1)


@exercise.alternative
def by_entr(weights):
    return torch.special.entr(weights).sum(dim=-1)


@exercise.alternative
def by_clamping(weights):
    return -(weights * weights.clamp(min=1e-30).log()).sum(dim=-1)


@exercise.alternative
def by_where(weights):
    logs = torch.where(weights > 0, torch.log(weights), torch.zeros_like(weights))
    return -(weights * logs).sum(-1)


@exercise.alternative
def by_nan_to_num(weights):
    return -torch.nan_to_num(weights * torch.log(weights)).sum(-1)


@exercise.alternative
def by_einsum(weights):
    return -torch.einsum("...k,...k->...", weights, weights.masked_fill(weights == 0, 1).log())
