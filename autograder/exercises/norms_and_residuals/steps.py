"""Cases of the two residual steps: a sublayer and a norm, by name, on tokens that are far from normalized."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from autograder.draw import Draw
from autograder.exercise import Case
from autograder.program import Program, call
from autograder.values import Named

MEAN, SPREAD = 1.0, 3.0


def look_back(x: Tensor) -> Tensor:
    """Give each token the one before it, as a sublayer that mixes tokens; bent, so that it is not linear."""
    return torch.tanh(x.roll(1, dims=-2))


NAMED = {
    "linear": nn.Linear,
    "layer norm": nn.LayerNorm,
    "look back": look_back,
    "nothing": torch.zeros_like,
    "halved": lambda x: x / 2,
}


def learned_sublayer(draw: Draw, leading: int = 1) -> Program:
    """Draw tokens, a linear sublayer and a layer norm with gains and biases of their own."""
    *lead, width = draw.sizes(leading + 1, low=3)
    return _step(draw, lead, width, _linear(draw, width))


def mixing_sublayer(draw: Draw) -> Program:
    """Let the sublayer mix tokens."""
    *lead, width = draw.sizes(3, low=3)
    return _step(draw, lead, width, Named("look back"))


def useless_sublayer(draw: Draw) -> Program:
    """Let the sublayer add nothing, so that what is left is the skip path alone."""
    *lead, width = draw.sizes(3, low=3)
    return _step(draw, lead, width, Named("nothing"))


def plain_norm(draw: Draw) -> Program:
    """Take a function in place of a norm: a step must use whatever it is given."""
    *lead, width = draw.sizes(2, low=3)
    return call(_tokens(draw, *lead, width), _linear(draw, width), Named("halved"))


def gradient_of_x(draw: Draw) -> Program:
    """Differentiate by the tokens: the gradient comes back along the skip path and through the sublayer."""
    return Program().gradients(*learned_sublayer(draw).steps[0].args, wrt=(0,), weighted=True)


def _step(draw: Draw, lead: list[int], width: int, sublayer: Named) -> Program:
    norm = Named("layer norm", (width,), {"weight": draw.normal(width, mean=0.5), "bias": draw.normal(width)})
    return call(_tokens(draw, *lead, width), sublayer, norm)


def _tokens(draw: Draw, *shape: int) -> Tensor:
    return draw.normal(*shape, scale=SPREAD, mean=MEAN)


def _linear(draw: Draw, width: int) -> Named:
    state = {"weight": draw.normal(width, width, scale=width**-0.5), "bias": draw.normal(width)}
    return Named("linear", (width, width), state)


CASES = [
    Case("a linear sublayer", learned_sublayer),
    Case("a sublayer that adds nothing", useless_sublayer),
    Case("a sublayer that mixes tokens", mixing_sublayer),
    Case("a batch", lambda draw: learned_sublayer(draw, leading=2), hidden=True),
    Case("a function in place of the norm", plain_norm, hidden=True),
    Case("float64", lambda draw: learned_sublayer(draw, leading=2), hidden=True, dtype="float64"),
    Case("the gradient of x", gradient_of_x, hidden=True, dtype="float64"),
    Case("another sublayer that adds nothing", useless_sublayer, hidden=True, dtype="float64"),
]
