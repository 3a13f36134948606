"""Check `block_flops`: a forward pass of one block, as a FLOP counter sees it."""

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.complexity import CHAPTER
from autograder.exercises.complexity.sizes import narrow, widths
from autograder.program import Program, call
from course_lib import costs


def long(draw: Draw) -> Program:
    """Draw a sequence at which the quadratic part is the larger one."""
    return call(draw.integer(400, 900), *narrow(draw))


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=costs.block_flops,
    returns=("the number of FLOPs",),
    cases=[
        Case("BERT base on 512 tokens", lambda draw: call(512, 768, 3072)),
        Case("all sizes differ", lambda draw: call(draw.integer(5, 25), *widths(draw))),
        Case("a long sequence, a narrow hidden layer", long, hidden=True),
        Case("one token", lambda draw: call(1, *widths(draw)), hidden=True),
        Case("more tokens than features", lambda draw: call(draw.integer(80, 200), *widths(draw)), hidden=True),
    ],
)


def _flops(sequence, d_model, d_ff, *, projections=4, products=2, matrices=2):
    n = sequence
    return 2 * n * (projections * d_model**2 + products * n * d_model + matrices * d_model * d_ff)


@exercise.misconception("""
    Your count is exactly half of ours: you count a multiplication and the addition after it as one. That convention
    ("MACs") is common too; in this course they are 2.
""")
def multiply_adds(sequence, d_model, d_ff):
    return _flops(sequence, d_model, d_ff) // 2


@exercise.misconception("""
    Your quadratic term is half of ours. Two products have it: queries by keys, and weights by values. (If you halved
    it for a causal mask: some papers do; here the whole table counts.)
""")
def one_product(sequence, d_model, d_ff):
    return _flops(sequence, d_model, d_ff, products=1)


@exercise.misconception("""
    Your projections are three quarters of ours: the output's is missing, which mixes what the heads found.
""")
def output_projection_forgotten(sequence, d_model, d_ff):
    return _flops(sequence, d_model, d_ff, projections=3)


@exercise.misconception("""
    The four projections of attention are missing. They cost more than its two products until the sequence is twice as
    long as the model is wide.
""")
def projections_forgotten(sequence, d_model, d_ff):
    return _flops(sequence, d_model, d_ff, projections=0)


@exercise.misconception("""
    Your feed-forward network has one matrix. There are two, up to d_ff and back.
""")
def one_feed_forward_matrix(sequence, d_model, d_ff):
    return _flops(sequence, d_model, d_ff, matrices=1)


@exercise.misconception("""
    The feed-forward network is missing from your count. For short sequences it is the largest part of a block.
""")
def attention_alone(sequence, d_model, d_ff):
    return _flops(sequence, d_model, d_ff, matrices=0)


@exercise.misconception("""
    Your count does not depend on d_ff: 4 d_model is built in. That is the usual choice, and only one.
""")
def four_times_built_in(sequence, d_model, d_ff):
    return _flops(sequence, d_model, 4 * d_model)


@exercise.misconception("""
    Your count is twice the weights for every token, and so linear in the sequence. That is a good rule for short
    sequences; what is missing are the two products that touch no weight: tokens by tokens.
""")
def twice_the_weights(sequence, d_model, d_ff):
    return _flops(sequence, d_model, d_ff, products=0)


@exercise.misconception("""
    Your count takes every parameter for a multiply-add, biases and norms too. They are additions and a few products
    per token, which a FLOP counter leaves out; take the matrices alone.
""")
def biases_and_norms_counted(sequence, d_model, d_ff):
    parameters = costs.block_parameter_count(d_model, d_ff)
    return 2 * sequence * parameters + 4 * sequence**2 * d_model


@exercise.misconception("""
    Your count is n² d + n d², what stands inside the documents' O. An O leaves out constants, and those decide which
    part is larger: here 4 for the first and 8 (and d_ff) for the second.
""")
def inside_the_o(sequence, d_model, d_ff):
    return sequence**2 * d_model + sequence * d_model**2


@exercise.misconception("""
    Your count is that of one token among `sequence`. The pass runs over all of them.
""")
def one_token(sequence, d_model, d_ff):
    return _flops(sequence, d_model, d_ff) // sequence


@exercise.misconception("""
    Your count is three times ours: forward and backward together. A training step does cost about that; here the
    forward pass is asked for.
""")
def backward_too(sequence, d_model, d_ff):
    return 3 * _flops(sequence, d_model, d_ff)


@exercise.alternative
def in_three_parts(sequence, d_model, d_ff):
    projections = 8 * sequence * d_model * d_model
    products = 4 * sequence * sequence * d_model
    feed_forward = 4 * sequence * d_model * d_ff
    return projections + products + feed_forward


@exercise.alternative
def factored(sequence, d_model, d_ff):
    return 4 * sequence * d_model * (2 * d_model + sequence + d_ff)


@exercise.alternative
def by_attention_flops(sequence, d_model, d_ff):
    return costs.attention_flops(sequence, sequence, d_model) + 2 * sequence * d_model * d_ff * 2


@exercise.alternative
def by_the_counter(sequence, d_model, d_ff):
    layer = nn.TransformerEncoderLayer(d_model, 1, d_ff, batch_first=True, device="meta")
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        layer(torch.empty(1, sequence, d_model, device="meta"))
    return counter.get_total_flops()
