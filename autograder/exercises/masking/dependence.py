"""Check `dependence`: the leak detector, tried on functions whose dependence is known."""

import torch
from torch import Tensor

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.masking import CHAPTER
from autograder.program import Program, call
from autograder.values import Named
from course_lib import dependence as detector
from course_lib.masks import causal_mask, masked_softmax

FAINT, LOUD = 1e-20, 1e12  # float32 rounds such an effect away in a sum; a gradient does not


def running_sum(x: Tensor) -> Tensor:
    """Depend on the past and on itself."""
    return x.cumsum(0)


def token_by_token(x: Tensor) -> Tensor:
    """Depend on the same token alone."""
    return torch.tanh(x) * x


def earlier_token(x: Tensor) -> Tensor:
    """Depend on the token before and not on itself; the first output is constant."""
    return torch.cat([torch.ones_like(x[:1]), x[:-1] ** 2])


def causal_attention(x: Tensor) -> Tensor:
    """Attend to the past: hidden before the softmax."""
    return masked_softmax(x @ x.mT, causal_mask(len(x))) @ x


def leaky_attention(x: Tensor) -> Tensor:
    """Attend to the past with clean weights that the future has paid for: hidden after the softmax."""
    return torch.softmax(x @ x.mT, dim=-1).masked_fill(causal_mask(len(x)), 0) @ x


def first_three(x: Tensor) -> Tensor:
    """Give fewer outputs than inputs, each with one feature that depends on two tokens."""
    return x[:3, :1] * x[1:4, -1:]


def every_pair(x: Tensor) -> Tensor:
    """Give more outputs than inputs: each token twice."""
    return torch.cat([x, 2 * x])


def opposite_outputs(x: Tensor) -> Tensor:
    """Give features whose sum is always 0, though each depends on the token at the other end."""
    mixed = x.flip(0)[:, :1] ** 2
    return torch.cat([mixed, -mixed], dim=1)


def opposite_inputs(x: Tensor) -> Tensor:
    """Depend on the difference of two features, so that the derivatives sum to 0."""
    ahead = x.roll(-1, 0)
    return ahead[:, :1] - ahead[:, 1:2]


def second_feature(x: Tensor) -> Tensor:
    """Depend on the next token in the second feature alone."""
    return torch.stack([x[:, 0], x[:, 1] * x.roll(-1, 0)[:, 1]], dim=1)


def faint_leak(x: Tensor) -> Tensor:
    """Depend on the token at the other end ever so slightly."""
    return x + FAINT * x.flip(0)


def gated_leak(x: Tensor) -> Tensor:
    """Depend on the last token where the own first feature is above 0, and nowhere else."""
    return x + x[:, :1].relu() * x[-1:]


def drowned_leak(x: Tensor) -> Tensor:
    """Depend on the token at the other end as usual, beside something so loud that rounding swallows it."""
    return LOUD * x + x.flip(0)


NAMED = {
    function.__name__: function
    for function in (
        *(running_sum, token_by_token, earlier_token, causal_attention, leaky_attention, first_three, every_pair),
        *(opposite_outputs, opposite_inputs, second_feature, faint_leak, drowned_leak, gated_leak),
    )
}


def of(*names: str):
    """Ask about some of the functions, one after another, on tokens that differ."""

    def draw_program(draw: Draw) -> Program:
        program = Program()
        for name in names:
            width, length = draw.sizes(2, low=3, high=6)
            program = program.call(Named(name), draw.normal(max(length, 4), width if width != 4 else 7))
        return program

    return draw_program


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=detector.dependence,
    returns=("the dependence",),
    named=NAMED,
    cases=[
        Case("a running sum, and a function of each token alone", of("running_sum", "token_by_token")),
        Case("attention hidden before the softmax, and after it", of("causal_attention", "leaky_attention")),
        Case("fewer outputs than inputs, and more", of("first_three", "every_pair")),
        Case("effects that cancel in a sum over the output's features", of("opposite_outputs"), hidden=True),
        Case("effects that cancel in a sum over the input's features", of("opposite_inputs"), hidden=True),
        Case("an effect on the second feature alone", of("second_feature"), hidden=True),
        Case("a faint effect", of("faint_leak"), hidden=True),
        Case("an effect beside a loud one", of("drowned_leak"), hidden=True),
        Case("an effect that some tokens open and others close", of("gated_leak", "gated_leak"), hidden=True),
        Case("the token before", of("earlier_token"), hidden=True),
        Case("float64", of("causal_attention", "running_sum"), hidden=True, dtype="float64"),
        Case("one token", lambda draw: call(Named("token_by_token"), draw.normal(1, 3)), hidden=True),
    ],
)


def _jacobian(function, x):
    return torch.autograd.functional.jacobian(function, x)


@exercise.misconception("""
    Your table has a row for every input. Rows belong to outputs here, as in a map of weights, where a row is what one
    query sees.
""")
def inputs_as_rows(function, x):
    return detector.dependence(function, x).T


@exercise.misconception("""
    Your table is True where nothing is felt. That is the way of a mask; this one is True where an output **depends** on
    an input.
""")
def independence(function, x):
    return ~detector.dependence(function, x)


@exercise.misconception("""
    You add up an output's features before you differentiate, and effects can cancel in that sum: here one feature
    gains what another loses. Every feature has to be asked by itself, or with a weight of its own.
""")
def output_features_summed(function, x):
    return (_jacobian(function, x).sum(1) != 0).any(-1)


@exercise.misconception("""
    You add up the derivatives by an input's features, and they can cancel: a function of a difference has the
    derivatives +1 and -1. Look whether any of them differs from 0 before you join them.
""")
def input_features_summed(function, x):
    return (_jacobian(function, x).sum(-1) != 0).any(1)


@exercise.misconception("""
    You look at each output's first feature alone. A leak can go through any of them.
""")
def first_feature_alone(function, x):
    return (_jacobian(function, x)[:, 0] != 0).any(-1)


@exercise.misconception("""
    Your rows fill up: each one holds the dependence of all outputs before it too. `backward` **adds** to `x.grad`; what
    was there from the last output stays unless you clear it.
""")
def gradients_not_cleared(function, x):
    found = detector.dependence(function, x)
    return found.int().cumsum(0) > 0


@exercise.misconception("""
    You change an input and look whether the output moves. That overlooks effects that rounding swallows, faint ones and
    those beside a loud one; their gradient, however small, is not 0. This exercise asks for gradients.
""")
def outputs_compared_after_a_change(function, x):
    before, columns = function(x), []
    for token in range(len(x)):
        moved = torch.zeros(len(before), dtype=torch.bool)
        for feature in range(x.shape[1]):
            changed = x.clone()
            changed[token, feature] += 1.5
            moved |= (function(changed) != before).any(-1)
        columns.append(moved)
    return torch.stack(columns, dim=1)


@exercise.misconception("""
    You count small gradients as none. A leak need not be strong: a model that is trained learns to amplify it. Under a
    correct mask the gradient is exactly 0, so exactly 0 is the border.
""")
def small_gradients_ignored(function, x):
    return (_jacobian(function, x).abs() > 1e-6).any(-1).any(1)


@exercise.misconception("""
    You take the gradients at zeros, or at other tokens of your own. A dependence may be open at one place and closed at
    another: a ReLU passes on only what is above 0. Ask at the `x` that was given.
""")
def asked_at_zeros(function, x):
    return detector.dependence(function, torch.zeros_like(x))


@exercise.misconception("""
    Your table is square: it has as many rows as there are inputs. A function may give more outputs than it takes, or
    fewer; ask its result how many there are.
""")
def as_many_outputs_as_inputs(function, x):
    found = detector.dependence(function, x)
    square = torch.zeros(len(x), len(x), dtype=torch.bool)
    rows = min(len(x), len(found))
    square[:rows] = found[:rows]
    return square


@exercise.misconception("""
    Your table holds the sizes of the gradients. Here only whether there is one matters: compare with 0.
""")
def sizes_of_the_gradients(function, x):
    return _jacobian(function, x).abs().sum(-1).sum(1)


@exercise.misconception("""
    You differentiate the sum of all outputs, so every row of your table is the same: whether **any** output depends on
    an input. Each output has to be asked by itself.
""")
def all_outputs_at_once(function, x):
    found = detector.dependence(function, x)
    return found.any(0).expand(found.shape).clone()


@exercise.alternative
def with_jacrev(function, x):
    table = torch.func.jacrev(function)(x)
    return (table != 0).any(-1).any(1)


@exercise.alternative
def output_by_output(function, x):
    x = x.clone().requires_grad_()
    output = function(x)
    rows = []
    for row in output:
        felt = torch.zeros(len(x), dtype=torch.bool)
        for feature in row:
            felt |= (torch.autograd.grad(feature, x, retain_graph=True)[0] != 0).any(-1)
        rows.append(felt)
    return torch.stack(rows)


@exercise.alternative
def with_backward_and_clearing(function, x):
    x = x.clone().requires_grad_()
    output = function(x)
    found = torch.zeros(len(output), len(x), dtype=torch.bool)
    for i in range(output.shape[0]):
        for a in range(output.shape[1]):
            x.grad = None
            output[i, a].backward(retain_graph=True)
            assert x.grad is not None
            found[i] |= x.grad.abs().amax(-1) > 0
    return found


@exercise.alternative
def with_directions(function, x):
    x = x.clone().requires_grad_()
    output = function(x)
    directions = torch.eye(output.numel(), dtype=output.dtype).reshape(-1, *output.shape)
    (table,) = torch.autograd.grad(output, x, directions, is_grads_batched=True)
    return (table != 0).any(-1).reshape(*output.shape, len(x)).any(1)
