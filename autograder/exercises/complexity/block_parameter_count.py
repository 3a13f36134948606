"""Check `block_parameter_count`: every number that a block learns."""

from torch import nn

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.complexity import CHAPTER
from autograder.exercises.complexity.sizes import narrow, widths
from autograder.program import Program, call
from course_lib import costs

USUAL_HEADS = 8  # those of the documents' example


def without_biases(draw: Draw) -> Program:
    """Leave the biases of the linear layers out."""
    return call(*widths(draw), bias=False)


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=costs.block_parameter_count,
    returns=("the number of parameters",),
    cases=[
        Case("a block of GPT-2 small", lambda draw: call(768, 3072)),
        Case("all sizes differ", lambda draw: call(*widths(draw))),
        Case("without biases", without_biases),
        Case("a narrow hidden layer", lambda draw: call(*narrow(draw)), hidden=True),
        Case("a narrow hidden layer without biases", lambda draw: call(*narrow(draw), False), hidden=True),
    ],
)


def _count(d_model, d_ff, bias, *, projections=4, matrices=2, norm_vectors=4, biases=None):
    linear_biases = projections * d_model + d_ff + d_model if biases is None else biases
    weights = projections * d_model**2 + matrices * d_model * d_ff
    return weights + (linear_biases if bias else 0) + norm_vectors * d_model


@exercise.misconception("""
    Your count holds d_model numbers for each head. Heads cut the same four matrices into pieces; where would a head
    keep a number of its own? Build `nn.TransformerEncoderLayer` with 1, 2 and 8 heads and count.
""")
def heads_counted(d_model, d_ff, bias=True):
    return 4 * d_model**2 + 2 * d_model * d_ff + d_model * USUAL_HEADS


@exercise.misconception("""
    Your count is 12 d_model². That is a good estimate of the weights when d_ff is 4 d_model; here d_ff is given, and
    biases and norms count as well.
""")
def twelve_squares(d_model, d_ff, bias=True):
    return 12 * d_model**2


@exercise.misconception("""
    The four projections and the two feed-forward matrices are there, and nothing else. With `bias=True` each of the
    six has a bias, and a block has two norms that learn as well.
""")
def matrices_alone(d_model, d_ff, bias=True):
    return _count(d_model, d_ff, False, norm_vectors=0)


@exercise.misconception("""
    Your count is short by 4 d_model: the norms are missing. Each of the two learns a gain and a bias.
""")
def norms_forgotten(d_model, d_ff, bias=True):
    return _count(d_model, d_ff, bias, norm_vectors=0)


@exercise.misconception("""
    Your count is short by 2 d_model: half of what the norms learn. A block has two norms, one for each sublayer, and
    each has a gain and a bias (RMSNorm alone has no bias).
""")
def half_of_the_norms(d_model, d_ff, bias=True):
    return _count(d_model, d_ff, bias, norm_vectors=2)


@exercise.misconception("""
    With `bias=False` you take the norms' biases away too. PyTorch's own layer does so, and the models that leave
    biases out often do; in this contract `bias` is about the linear layers, and the norms keep gain and bias.
""")
def norm_biases_go_too(d_model, d_ff, bias=True):
    return _count(d_model, d_ff, bias, norm_vectors=4 if bias else 2)


@exercise.misconception("""
    The biases of the linear layers are missing, with `bias=True` as without. Every output of a linear layer has one:
    count the outputs of all six.
""")
def biases_never(d_model, d_ff, bias=True):
    return _count(d_model, d_ff, False)


@exercise.misconception("""
    `bias=False` has no influence on your count. Which of your terms belong to biases of linear layers?
""")
def bias_flag_ignored(d_model, d_ff, bias=True):
    return _count(d_model, d_ff, True)


@exercise.misconception("""
    Three projections are in your count: those of queries, keys and values. A fourth mixes what the heads found.
""")
def output_projection_forgotten(d_model, d_ff, bias=True):
    return _count(d_model, d_ff, bias, projections=3)


@exercise.misconception("""
    Your feed-forward network has one matrix. There are two: up to d_ff and back.
""")
def one_feed_forward_matrix(d_model, d_ff, bias=True):
    return _count(d_model, d_ff, bias, matrices=1)


@exercise.misconception("""
    Your feed-forward network has three matrices. A gated one has; this block is the plain one, with two.
""")
def gated_network(d_model, d_ff, bias=True):
    return _count(d_model, d_ff, bias, matrices=3)


@exercise.misconception("""
    Your count does not depend on d_ff: 4 d_model is built in. That is the usual choice, and only one.
""")
def four_times_built_in(d_model, d_ff, bias=True):
    return _count(d_model, 4 * d_model, bias)


@exercise.misconception("""
    The feed-forward biases are right, but the four projections have none in your count. The first paper writes none;
    here, as in PyTorch, `bias=True` gives one to all six linear layers.
""")
def attention_without_biases(d_model, d_ff, bias=True):
    return _count(d_model, d_ff, bias, biases=d_ff + d_model)


@exercise.misconception("""
    Both biases of your feed-forward network have d_ff entries. A bias has one entry for each **output** of its layer.
""")
def feed_forward_biases_alike(d_model, d_ff, bias=True):
    return _count(d_model, d_ff, bias, biases=4 * d_model + 2 * d_ff)


@exercise.alternative
def part_by_part(d_model, d_ff, bias=True):
    attention = 4 * (d_model * d_model + bias * d_model)
    feed_forward = d_ff * (d_model + bias) + d_model * (d_ff + bias)
    return attention + feed_forward + 2 * (d_model + d_model)


@exercise.alternative
def counted_on_modules(d_model, d_ff, bias=True):
    shapes = [(d_model, d_model)] * 4 + [(d_model, d_ff), (d_ff, d_model)]
    layers = [nn.Linear(*shape, bias=bias, device="meta") for shape in shapes]
    layers += [nn.LayerNorm(d_model, device="meta") for _ in range(2)]
    return sum(weight.numel() for layer in layers for weight in layer.parameters())


@exercise.alternative
def counted_on_the_framework_layer(d_model, d_ff, bias=True):
    layer = nn.TransformerEncoderLayer(d_model, 1, d_ff, bias=bias, device="meta")
    found = sum(weight.numel() for weight in layer.parameters())
    return found if bias else found + 2 * d_model


@exercise.alternative
def factored(d_model, d_ff, bias=True):
    biases = 5 * d_model + d_ff if bias else 0
    return 2 * d_model * (2 * d_model + d_ff + 2) + biases
