"""Check `FeedForward`: the network as a module that learns."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.feed_forward import CHAPTER
from autograder.exercises.feed_forward.module import called, equals_one_of, repeatable, tanh_gelu
from autograder.program import Program, build
from course_lib import feed_forward

NAMES = {"relu": F.relu, "gelu": F.gelu}


def drawn_state(draw: Draw, d_model: int, d_ff: int) -> dict:
    """Draw the weights of a network by their names."""
    return draw.state(
        linear_1__weight=(d_ff, d_model),
        linear_1__bias=(d_ff,),
        linear_2__weight=(d_model, d_ff),
        linear_2__bias=(d_model,),
    )


def network(draw: Draw, *arguments: str, leading: int = 3, gradients: bool = False, twice: bool = False) -> Program:
    """Build a network with drawn weights and call it on tokens."""
    d_model, d_ff, *axes = draw.sizes(2 + leading)
    x = draw.normal(*axes[:-1], d_model)
    program = build(d_model, d_ff, *arguments).load(drawn_state(draw, d_model, d_ff)).call(x)
    program = program.call(x) if twice else program
    names = ("linear_1.weight", "linear_1.bias", "linear_2.weight")
    return program.gradients(x, wrt=(0, *names)) if gradients else program


def unknown_activation(draw: Draw) -> Program:
    """Ask for an activation that the module does not have."""
    d_model, d_ff, sequence = draw.sizes(3)
    return build(d_model, d_ff, "swish").load(drawn_state(draw, d_model, d_ff)).call(draw.normal(sequence, d_model))


class TanhFeedForward(feed_forward.FeedForward):
    """The network with the tanh form of GELU, which passes as well."""

    def forward(self, x):
        """Return the transformed tokens."""
        activation = tanh_gelu if self.activation == "gelu" else F.relu
        return self.linear_2(activation(self.linear_1(x)))


either_form = equals_one_of(feed_forward.FeedForward, TanhFeedForward)

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=feed_forward.FeedForward,
    returns=("the result",),
    properties=[repeatable],
    forbids=["course_lib.feed_forward.FeedForward"],
    cases=[
        Case("ReLU, two calls", lambda draw: network(draw, "relu", twice=True)),
        Case("GELU by default", network, judge=either_form),
        Case("GELU by name, a single sequence", lambda draw: network(draw, "gelu", leading=2), judge=either_form),
        Case("an activation that it does not have", unknown_activation, hidden=True),
        Case("gradients", lambda draw: network(draw, "relu", gradients=True), hidden=True),
        Case("several leading axes", lambda draw: network(draw, "relu", leading=4), hidden=True),
        Case("float64", network, judge=either_form, hidden=True, dtype="float64"),
    ],
)


class _Parts(feed_forward.FeedForward):
    """The network with its activation as a method, so that a belief can replace it."""

    def activate(self, x):
        return NAMES[self.activation](x)

    def forward(self, x):
        return self.linear_2(self.activate(self.linear_1(x)))


@exercise.misconception("""
    Asked for GELU, your module uses ReLU: the argument `activation` has no influence. The name is accepted and
    forgotten; which line reads it?
""")
class AlwaysRelu(_Parts):
    def activate(self, x):
        return F.relu(x)


@exercise.misconception("""
    Asked for ReLU, your module uses GELU: the argument `activation` has no influence. The name is accepted and
    forgotten; which line reads it?
""")
class AlwaysGelu(_Parts):
    def activate(self, x):
        return F.gelu(x)


@exercise.misconception("""
    By name both activations are right, but the default is ReLU. The paper's is; this class, as BERT and GPT,
    defaults to "gelu".
""")
class ReluByDefault(_Parts):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__(d_model, d_ff, activation)


@exercise.misconception("""
    The two names are exchanged: "relu" gives GELU, and "gelu" gives ReLU.
""")
class NamesExchanged(_Parts):
    def activate(self, x):
        return F.gelu(x) if self.activation == "relu" else F.relu(x)


@exercise.misconception("""
    The activation stands after the second layer, and none between the two. Two linear layers in a row are one
    linear layer: the hidden units add nothing. Check that f(x) + f(-x) is not always 2 f(0).
""")
class ActivationAfterSecondLayer(_Parts):
    def forward(self, x):
        return self.activate(self.linear_2(self.linear_1(x)))


@exercise.misconception("""
    Nothing stands between the two layers. Then they are one linear layer, whatever d_ff is. Is the activation
    called in `forward`, or only stored?
""")
class NoActivation(_Parts):
    def activate(self, x):
        return x


@exercise.misconception("""
    The activation acts on the output too. The second layer ends without one: what the network writes may be
    negative.
""")
class ActivationTwice(_Parts):
    def forward(self, x):
        return self.activate(super().forward(x))


@exercise.misconception("""
    Your output minus the expected one is x: the residual path is already inside. The block adds it, so that this
    part can be exchanged for another.
""")
class ResidualInside(_Parts):
    def forward(self, x):
        return x + super().forward(x)


@exercise.misconception("""
    Both layers are d_model wide: d_ff has no influence. The first layer leads from d_model to d_ff, the second
    back.
""")
def inner_width_not_used(d_model, d_ff, activation="gelu"):
    return called("FeedForward", _Parts)(d_model, d_model, activation)


@exercise.misconception("""
    The widths of your layers are exchanged. A token comes in with d_model features; the first layer spreads it over
    d_ff hidden units, and the second brings it back.
""")
def widths_exchanged(d_model, d_ff, activation="gelu"):
    return called("FeedForward", _Parts)(d_ff, d_model, activation)


@exercise.misconception("""
    Your layers have no biases; the loaded weights name `linear_1.bias` and `linear_2.bias`. Some large models leave
    them out, this module keeps them.
""")
def without_biases(d_model, d_ff, activation="gelu"):
    made = called("FeedForward", _Parts)(d_model, d_ff, activation)
    made.linear_1, made.linear_2 = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_ff, d_model, bias=False)
    return made


@exercise.misconception("""
    An activation that the module does not know becomes ReLU without a word, and the model trains as if nothing had
    happened. Raise a `ValueError` that names it.
""")
class UnknownNameGivesRelu(_Parts):
    def __init__(self, d_model, d_ff, activation="gelu"):
        super().__init__(d_model, d_ff, "gelu" if activation == "gelu" else "relu")


@exercise.misconception("""
    An activation that the module does not know becomes GELU without a word, and the model trains as if nothing had
    happened. Raise a `ValueError` that names it.
""")
class UnknownNameGivesGelu(_Parts):
    def __init__(self, d_model, d_ff, activation="gelu"):
        super().__init__(d_model, d_ff, "relu" if activation == "relu" else "gelu")


@exercise.misconception("""
    An unknown activation ends in a KeyError: a dictionary that does not have the name. Test for it when the module is
    built, and raise a `ValueError` that says which names there are.
""")
class KeyErrorForUnknownName(_Parts):
    def __init__(self, d_model, d_ff, activation="gelu"):
        NAMES[activation]
        super().__init__(d_model, d_ff, activation)


class _Plain(nn.Module):
    """A module written from nothing, for the accepted forms."""

    def __init__(self, d_model, d_ff, activation="gelu"):
        super().__init__()
        if activation not in NAMES:
            raise ValueError(f"unknown activation {activation}")
        self.chosen = activation
        self.linear_2 = nn.Linear(d_ff, d_model)
        self.linear_1 = nn.Linear(d_model, d_ff)


@exercise.alternative
class WithModules(_Plain):
    def __init__(self, d_model, d_ff, activation="gelu"):
        super().__init__(d_model, d_ff, activation)
        self.act = {"relu": nn.ReLU(), "gelu": nn.GELU()}[activation]

    def forward(self, x):
        return self.linear_2(self.act(self.linear_1(x)))


@exercise.alternative
class WithTanhForm(_Plain):
    def forward(self, x):
        hidden = self.linear_1(x)
        hidden = torch.relu(hidden) if self.chosen == "relu" else tanh_gelu(hidden)
        return self.linear_2(hidden)


@exercise.alternative
class WithMatrixProducts(_Plain):
    def forward(self, x):
        hidden = x @ self.linear_1.weight.T + self.linear_1.bias
        gate = hidden > 0 if self.chosen == "relu" else (1 + torch.erf(hidden / 2**0.5)) / 2
        hidden = hidden * gate
        return hidden @ self.linear_2.weight.T + self.linear_2.bias


@exercise.alternative
class AsAConvolution(_Plain):
    def forward(self, x):
        flat = x.reshape(1, -1, x.shape[-1]).mT
        hidden = F.conv1d(flat, self.linear_1.weight[..., None], self.linear_1.bias)
        out = F.conv1d(NAMES[self.chosen](hidden), self.linear_2.weight[..., None], self.linear_2.bias)
        return out.mT.reshape(x.shape)


@exercise.alternative
class ByName(_Plain):
    def forward(self, x):
        return self.linear_2(getattr(F, self.chosen)(self.linear_1(x)))


@exercise.alternative
class RefusedWhenCalled(nn.Module):
    def __init__(self, d_model, d_ff, activation="gelu"):
        super().__init__()
        self.linear_1, self.linear_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.activation = activation

    def forward(self, x):
        if self.activation == "relu":
            return self.linear_2(F.relu(self.linear_1(x)))
        if self.activation == "gelu":
            return self.linear_2(F.gelu(self.linear_1(x)))
        raise ValueError("activation must be relu or gelu")
