"""Check `swiglu`: one projection opens and closes the other."""

import torch
import torch.nn.functional as F

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.feed_forward import CHAPTER
from autograder.program import Program, call
from course_lib import feed_forward


def gated(draw: Draw, *leading: int, scale: float = 1.0) -> Program:
    """Draw tokens and three matrices."""
    d_model, d_ff, sequence = draw.sizes(3, low=3)
    x = draw.normal(*leading, sequence, d_model, scale=scale)
    return call(x, draw.normal(d_model, d_ff), draw.normal(d_model, d_ff), draw.normal(d_ff, d_model))


def gradients(draw: Draw) -> Program:
    """Look at the gradients of the tokens and of all three matrices."""
    program = gated(draw)
    return program.gradients(*program.steps[0].args, wrt=(0, 1, 2, 3))


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=feed_forward.swiglu,
    returns=("the result",),
    cases=[
        Case("a batch of two", lambda draw: gated(draw, 2)),
        Case("one sequence", gated),
        Case("large tokens", lambda draw: gated(draw, scale=5.0), hidden=True),
        Case("gradients", gradients, hidden=True),
        Case("several leading axes", lambda draw: gated(draw, 2, 9), hidden=True),
        Case("float64", gated, hidden=True, dtype="float64"),
    ],
)


@exercise.misconception("""
    Exchange w_gate and w_up, and your result is right: SiLU acts on the wrong projection. The one that goes through
    SiLU is the gate; the other stays linear.
""")
def gate_and_value_exchanged(x, w_gate, w_up, w_down):
    return (x @ w_gate * F.silu(x @ w_up)) @ w_down


@exercise.misconception("""
    SiLU acts on both projections, so neither can carry a large negative value. Only the gate is bent; what it lets
    through stays linear.
""")
def both_activated(x, w_gate, w_up, w_down):
    return (F.silu(x @ w_gate) * F.silu(x @ w_up)) @ w_down


@exercise.misconception("""
    SiLU acts on the product of the two projections. Bend the gate first, then multiply.
""")
def product_activated(x, w_gate, w_up, w_down):
    return F.silu(x @ w_gate * (x @ w_up)) @ w_down


@exercise.misconception("""
    Your gate is a sigmoid, between 0 and 1. That is the original gated linear unit (GLU). In SwiGLU the gate is
    SiLU: z times its sigmoid.
""")
def sigmoid_gate(x, w_gate, w_up, w_down):
    return (torch.sigmoid(x @ w_gate) * (x @ w_up)) @ w_down


@exercise.misconception("""
    Your gate is GELU. That is GEGLU, a sister of SwiGLU that T5 version 1.1 uses; the two differ by a tenth or so.
    Here SiLU is asked, z times its sigmoid.
""")
def gelu_gate(x, w_gate, w_up, w_down):
    return (F.gelu(x @ w_gate) * (x @ w_up)) @ w_down


@exercise.misconception("""
    Your gate is ReLU (that network is called ReGLU). Here it is SiLU, z times its sigmoid, which lets a little of
    what is negative through.
""")
def relu_gate(x, w_gate, w_up, w_down):
    return (F.relu(x @ w_gate) * (x @ w_up)) @ w_down


@exercise.misconception("""
    There is no activation at all: you multiply two linear projections. (Shazeer calls it "bilinear", and it works
    better than one would think; here it is not asked.)
""")
def no_activation(x, w_gate, w_up, w_down):
    return (x @ w_gate * (x @ w_up)) @ w_down


@exercise.misconception("""
    You add the two projections. A gate multiplies: where it is 0, nothing passes.
""")
def sum_for_product(x, w_gate, w_up, w_down):
    return (F.silu(x @ w_gate) + x @ w_up) @ w_down


@exercise.misconception("""
    w_up has no influence on your result: you computed a plain network with SiLU. What should the gate be multiplied
    with?
""")
def up_ignored(x, w_gate, w_up, w_down):
    return F.silu(x @ w_gate) @ w_down


@exercise.misconception("""
    The gate opens and closes itself: w_gate is used twice, and w_up has no influence.
""")
def gate_used_twice(x, w_gate, w_up, w_down):
    return (F.silu(x @ w_gate) * (x @ w_gate)) @ w_down


@exercise.misconception("""
    Your gate is a softmax over the hidden units, so they compete and their gates sum to 1. Each unit's gate is open
    or closed by itself: SiLU acts on every entry alone.
""")
def softmax_gate(x, w_gate, w_up, w_down):
    return (F.softmax(x @ w_gate, dim=-1) * (x @ w_up)) @ w_down


@exercise.misconception("""
    SiLU comes after the last matrix. The output of the network is linear; the gate is bent before the product.
""")
def activation_at_the_end(x, w_gate, w_up, w_down):
    return F.silu((x @ w_gate * (x @ w_up)) @ w_down)


@exercise.alternative
def by_sigmoid(x, w_gate, w_up, w_down):
    gate = x @ w_gate
    return torch.matmul(gate * torch.sigmoid(gate) * torch.matmul(x, w_up), w_down)


@exercise.alternative
def one_wide_product(x, w_gate, w_up, w_down):
    gate, up = (x @ torch.cat([w_gate, w_up], dim=1)).chunk(2, dim=-1)
    return (F.silu(gate) * up) @ w_down


@exercise.alternative
def by_einsum(x, w_gate, w_up, w_down):
    gate, up = (torch.einsum("...d,df->...f", x, matrix) for matrix in (w_gate, w_up))
    return torch.einsum("...f,...f,fd->...d", torch.nn.SiLU()(gate), up, w_down)


@exercise.alternative
def by_linear(x, w_gate, w_up, w_down):
    gate = F.linear(x, w_gate.T)
    return F.linear(gate / (1 + torch.exp(-gate)) * F.linear(x, w_up.T), w_down.T)
