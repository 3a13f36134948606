"""Check `position_wise_ffn`: two layers, the activation between them, tokens apart."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.feed_forward import CHAPTER
from autograder.program import Program, call
from autograder.values import Named
from course_lib import feed_forward

Array = np.ndarray
LARGEST_D_MODEL, LARGEST_D_FF = 6, 13


def network(draw: Draw, *leading: int, activation: str = "relu") -> Program:
    """Draw tokens and weights; every size differs, and no bias is 0."""
    sequence, d_model = draw.sizes(2, high=LARGEST_D_MODEL)
    d_ff = draw.integer(LARGEST_D_MODEL + 1, LARGEST_D_FF)
    shapes = ((*leading, sequence, d_model), (d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,))
    return call(*(draw.normal(*shape) for shape in shapes), Named(activation))


def single_token(draw: Draw) -> Program:
    """Draw one token without a sequence axis."""
    program = network(draw, activation="tanh")
    x, *rest = program.steps[0].args
    return call(x[0], *rest)


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=feed_forward.position_wise_ffn,
    returns=("the result",),
    named={"relu": feed_forward.relu, "tanh": np.tanh, "gelu": feed_forward.gelu, "square": np.square},
    cases=[
        Case("ReLU, all sizes differ", network),
        Case("another activation", lambda draw: network(draw, activation="tanh")),
        Case("a batch of sequences", lambda draw: network(draw, 7, activation="gelu"), hidden=True),
        Case("several leading axes", lambda draw: network(draw, 2, 3), hidden=True),
        Case("the square as activation", lambda draw: network(draw, activation="square"), hidden=True),
        Case("one token", single_token, hidden=True),
        Case("float32", network, hidden=True, dtype="float32"),
    ],
)


@exercise.misconception("""
    With ReLU your output is never negative: the activation stands after the second layer. Then the two matrices
    meet with nothing between them, and two matrices in a row are one matrix. Where does it do its work?
""")
def activation_at_the_end(x, w_1, b_1, w_2, b_2, activation):
    return activation((x @ w_1 + b_1) @ w_2 + b_2)


@exercise.misconception("""
    The activation has no influence on your result. Without it, f(x) + f(-x) = 2 f(0) for every x, which is the mark
    of a single linear layer: however wide the hidden layer, it adds nothing.
""")
def no_activation(x, w_1, b_1, w_2, b_2, activation):
    return (x @ w_1 + b_1) @ w_2 + b_2


@exercise.misconception("""
    The activation comes before the first layer, so negative features of a token are lost before anything has looked
    at them. It belongs on the hidden units, between the two layers.
""")
def activation_first(x, w_1, b_1, w_2, b_2, activation):
    return (activation(x) @ w_1 + b_1) @ w_2 + b_2


@exercise.misconception("""
    The activation acts twice, on the hidden units and on the output. The second layer ends without one, so that the
    network can write negative numbers as well: it will be added to the token.
""")
def activation_twice(x, w_1, b_1, w_2, b_2, activation):
    return activation(activation(x @ w_1 + b_1) @ w_2 + b_2)


@exercise.misconception("""
    Your b_1 is added after the activation. A bias decides **when** a unit fires, so it must be inside; with b_1 = 0
    nobody would notice.
""")
def first_bias_outside(x, w_1, b_1, w_2, b_2, activation):
    return (activation(x @ w_1) + b_1) @ w_2 + b_2


@exercise.misconception("""
    Your b_1 and b_2 have no influence. Without them a token of zeros can only become zeros (with ReLU or tanh).
""")
def no_biases(x, w_1, b_1, w_2, b_2, activation):
    return activation(x @ w_1) @ w_2


@exercise.misconception("""
    Your b_1 has no influence: every hidden unit starts to fire at 0. Add it before the activation.
""")
def first_bias_forgotten(x, w_1, b_1, w_2, b_2, activation):
    return activation(x @ w_1) @ w_2 + b_2


@exercise.misconception("""
    Your result is off by the same amount in every token: b_2 is missing.
""")
def second_bias_forgotten(x, w_1, b_1, w_2, b_2, activation):
    return activation(x @ w_1 + b_1) @ w_2


@exercise.misconception("""
    Your result minus the expected one is x itself: you added the residual path already. In a block it is added
    outside, next to the norm, so that the network stays a part that can be exchanged.
""")
def residual_inside(x, w_1, b_1, w_2, b_2, activation):
    return x + activation(x @ w_1 + b_1) @ w_2 + b_2


@exercise.misconception("""
    With ReLU all is right, and no other activation changes anything: your code has ReLU built in. Use the callable
    that you are handed.
""")
def always_relu(x, w_1, b_1, w_2, b_2, activation):
    return np.maximum(x @ w_1 + b_1, 0) @ w_2 + b_2


@exercise.misconception("""
    You multiply from the left, `w_1 @ x`, as one of the documents writes it. That form needs tokens as columns and
    w_1 of shape (d_ff, d_model). Here tokens are rows and w_1 is (d_model, d_ff): the shared axis must meet
    itself.
""")
def matrix_from_the_left(x, w_1, b_1, w_2, b_2, activation):
    return w_2 @ activation(w_1 @ x + b_1) + b_2


@exercise.misconception("""
    You transpose the matrices, as `nn.Linear` does with its weight of shape (out, in). Here w_1 is
    (d_model, d_ff) already: in, out.
""")
def matrices_transposed(x, w_1, b_1, w_2, b_2, activation):
    return activation(x @ w_1.T + b_1) @ w_2.T + b_2


@exercise.misconception("""
    Your hidden units are divided by the root of d_model, as scores are in attention. There is no such division in
    this network; the scale is chosen once, when the weights are drawn.
""")
def scaled_like_scores(x, w_1, b_1, w_2, b_2, activation):
    return activation(x @ w_1 / math.sqrt(x.shape[-1]) + b_1) @ w_2 + b_2


@exercise.alternative
def by_einsum(x, w_1, b_1, w_2, b_2, activation):
    hidden = activation(np.einsum("...d,df->...f", x, w_1) + b_1)
    return np.einsum("...f,fd->...d", hidden, w_2) + b_2


@exercise.alternative
def one_token_at_a_time(x, w_1, b_1, w_2, b_2, activation):
    tokens = x.reshape(-1, x.shape[-1])
    return np.stack([activation(token @ w_1 + b_1) @ w_2 + b_2 for token in tokens]).reshape(x.shape)


@exercise.alternative
def sum_over_hidden_units(x, w_1, b_1, w_2, b_2, activation):
    result = np.zeros_like(x) + b_2
    for unit in range(len(w_2)):
        result = result + activation(x @ w_1[:, unit] + b_1[unit])[..., None] * w_2[unit]
    return result


@exercise.alternative
def biases_as_extra_rows(x, w_1, b_1, w_2, b_2, activation):
    one = np.ones_like(x[..., :1])
    hidden = activation(np.concatenate([x, one], -1) @ np.vstack([w_1, b_1]))
    return np.concatenate([hidden, one], -1) @ np.vstack([w_2, b_2])


@exercise.alternative
def by_dot(x, w_1, b_1, w_2, b_2, activation):
    return np.add(np.dot(activation(np.dot(x, w_1) + b_1), w_2), b_2)
