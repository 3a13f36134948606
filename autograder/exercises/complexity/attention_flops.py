"""Check `attention_flops`: two products and four projections, from n_q queries over n_k keys."""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.complexity import CHAPTER
from autograder.exercises.complexity.sizes import lengths
from autograder.program import Program, call
from course_lib import costs

USUAL_HEADS = 8


def other_lengths(draw: Draw) -> Program:
    """Draw more keys than queries, or fewer."""
    return call(*lengths(draw), draw.integer(30, 70))


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=costs.attention_flops,
    returns=("the number of FLOPs",),
    cases=[
        Case("BERT base on 512 tokens", lambda draw: call(512, 512, 768)),
        Case("as many keys as queries", lambda draw: call(*[draw.integer(10, 90)] * 2, draw.integer(30, 70))),
        Case("other lengths", other_lengths),
        Case("other lengths again", other_lengths, hidden=True),
        Case("one query over a cache", lambda draw: call(1, draw.integer(50, 99), draw.integer(30, 49)), hidden=True),
        Case("far more tokens than features", lambda draw: call(900, 1_000, draw.integer(4, 9)), hidden=True),
    ],
)


def _flops(n_q, n_k, d_model, *, products=2, from_queries=2, from_keys=2, per_step=2):
    return per_step * d_model * ((from_queries * n_q + from_keys * n_k) * d_model + products * n_q * n_k)


@exercise.misconception("""
    Your count is exactly half of ours: you count a multiplication and the addition after it as one. That convention
    ("MACs") is common too; in this course they are 2.
""")
def multiply_adds(n_q, n_k, d_model):
    return _flops(n_q, n_k, d_model, per_step=1)


@exercise.misconception("""
    The products cost half of what they should. Scoring multiplies queries by keys; what multiplies the weights
    afterwards? (If you halved both for a causal mask: some papers do. Here the whole table counts, as a plain kernel
    computes all of it.)
""")
def one_product(n_q, n_k, d_model):
    return _flops(n_q, n_k, d_model, products=1)


@exercise.misconception("""
    Your count holds the two products alone. Queries, keys, values and the output each go through a matrix of
    (d_model, d_model) as well, and for short sequences those cost more.
""")
def projections_forgotten(n_q, n_k, d_model):
    return _flops(n_q, n_k, d_model, from_queries=0, from_keys=0)


@exercise.misconception("""
    Your count holds the projections alone. The two products, queries by keys and weights by values, are what grows
    with the square of the sequence.
""")
def products_forgotten(n_q, n_k, d_model):
    return _flops(n_q, n_k, d_model, products=0)


@exercise.misconception("""
    Three projections are in your count. The fourth one mixes what the heads found, once for every query.
""")
def output_projection_forgotten(n_q, n_k, d_model):
    return _flops(n_q, n_k, d_model, from_queries=1)


@exercise.misconception("""
    All four of your projections run over the queries. Keys and values are made from the n_k tokens that are looked at.
""")
def projections_of_queries_alone(n_q, n_k, d_model):
    return _flops(n_q, n_k, d_model, from_queries=4, from_keys=0)


@exercise.misconception("""
    All four of your projections run over the keys. The query and the output are projected once per query.
""")
def projections_of_keys_alone(n_q, n_k, d_model):
    return _flops(n_q, n_k, d_model, from_queries=0, from_keys=4)


@exercise.misconception("""
    The output's projection runs over the keys in your count. What attention returns has one row for each query.
""")
def output_as_long_as_the_keys(n_q, n_k, d_model):
    return _flops(n_q, n_k, d_model, from_queries=1, from_keys=3)


@exercise.misconception("""
    Your table of scores is square. It has n_q rows and n_k columns, and the two lengths may differ.
""")
def square_of_the_queries(n_q, n_k, d_model):
    return 2 * d_model * ((2 * n_q + 2 * n_k) * d_model + 2 * n_q * n_q)


@exercise.misconception("""
    Your count is n_q · n_k · d_model, what stands inside the documents' O(n² d). An O leaves out constants and smaller
    terms; here they are asked for.
""")
def inside_the_o(n_q, n_k, d_model):
    return n_q * n_k * d_model


@exercise.misconception("""
    Your two products are multiplied by a number of heads. Each of h heads works on d_model / h features, so together
    they cost what one wide head does.
""")
def times_the_heads(n_q, n_k, d_model):
    return _flops(n_q, n_k, d_model, products=2 * USUAL_HEADS)


@exercise.misconception("""
    Your count is three times ours: forward and backward together. A training step does cost about that; here the
    forward pass is asked for.
""")
def backward_too(n_q, n_k, d_model):
    return 3 * _flops(n_q, n_k, d_model)


@exercise.alternative
def step_by_step(n_q, n_k, d_model):
    project = 2 * d_model * d_model
    scores = 2 * n_q * n_k * d_model
    mixture = 2 * n_q * n_k * d_model
    return n_q * project + n_k * project + n_k * project + scores + mixture + n_q * project


@exercise.alternative
def factored(n_q, n_k, d_model):
    return 4 * d_model * (d_model * (n_q + n_k) + n_q * n_k)


@exercise.alternative
def by_the_counter(n_q, n_k, d_model):
    layers = [nn.Linear(d_model, d_model, bias=False, device="meta") for _ in range(4)]
    x, memory = (torch.empty(length, d_model, device="meta") for length in (n_q, n_k))
    with FlopCounterMode(display=False) as counter:
        layers[3]((layers[0](x) @ layers[1](memory).T).softmax(-1) @ layers[2](memory))
    return counter.get_total_flops()
