"""The wrong beliefs about `SwitchFeedForward`: each a layer with one step gone wrong."""

import math

import torch
import torch.nn.functional as F

from autograder.exercises.variants.switch_feed_forward import exercise
from course_lib.models import switch
from course_lib.models.switch import Routing
from course_lib.routing import switch_route


class _Parts(switch.SwitchFeedForward):
    """The layer with its steps as methods, so that a belief can replace one of them."""

    def room(self, x):
        return math.ceil(self.capacity_factor * x.shape[0] * x.shape[1] / len(self.experts))

    def route(self, logits, capacity):
        return switch_route(logits, capacity)

    def start(self, rows, gate):
        return torch.zeros_like(rows)

    def gate(self, gate, logits):
        return gate

    def activated(self, expert, rows):
        return expert(rows)

    def forward(self, x):
        rows = x.flatten(0, -2)
        logits = self.router(rows)
        index, gate, kept = self.route(logits, self.room(x))
        gate = self.gate(gate, logits)
        output = self.start(rows, gate)
        for number, expert in enumerate(self.experts):
            chosen = (kept & (index == number)).nonzero().flatten()
            if len(chosen):
                said = gate[chosen, None] * self.activated(expert, rows[chosen])
                output = output.index_copy(0, chosen, said)
        self.routing = Routing(logits, index, gate, kept)
        return output.view_as(x)


@exercise.misconception("""
    Your gate is not there: what the expert says is returned as it is. The choice of an expert is a jump, with no
    gradient; only through the factor p can the router learn. What is the gradient of `router.weight` in your layer?
""")
class GateNotApplied(_Parts):
    def gate(self, gate, logits):
        return torch.ones_like(gate)


@exercise.misconception("""
    The values are right, and your router cannot learn: its probability is cut off from the gradient, as `detach`,
    `.item()` or `no_grad` do. The gate is the only way by which the loss reaches the router.
""")
class GateWithoutGradient(_Parts):
    def gate(self, gate, logits):
        return gate.detach()


@exercise.misconception("""
    Your gate scales what goes into the expert. It belongs on what comes out: an expert has biases and a ReLU, so the
    two are not the same.
""")
class GateOnTheInput(_Parts):
    def forward(self, x):
        rows = x.flatten(0, -2)
        index, gate, kept = switch_route(self.router(rows), self.room(x))
        output = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            chosen = (kept & (index == number)).nonzero().flatten()
            if len(chosen):
                output = output.index_copy(0, chosen, expert(gate[chosen, None] * rows[chosen]))
        return output.view_as(x)


@exercise.misconception("""
    Your gate is the router's raw score, which can be negative or beyond 1. It should be the probability that the
    softmax over all experts gives to the chosen one.
""")
class RawScoreAsGate(_Parts):
    def gate(self, gate, logits):
        return logits.max(-1).values


@exercise.misconception("""
    Your gate is the smallest probability: the share of the least trusted expert scales the answer of the most trusted
    one. Which entry of the softmax belongs to the expert that was chosen?
""")
class SmallestProbabilityAsGate(_Parts):
    def gate(self, gate, logits):
        return logits.softmax(-1).min(-1).values


@exercise.misconception("""
    Tokens beyond the capacity leave your layer as themselves, scaled by the gate. They should give 0: the residual
    around the layer carries them on, and here they would be counted twice. What should the output hold before the
    experts write into it?
""")
class DroppedTokenPasses(_Parts):
    def start(self, rows, gate):
        return gate[:, None] * rows


@exercise.misconception("""
    Tokens beyond the capacity leave your layer unchanged. They should give 0: the residual around the layer adds the
    token itself already.
""")
class DroppedTokenUnchanged(_Parts):
    def start(self, rows, gate):
        return rows.clone()


@exercise.misconception("""
    No token is ever dropped. Each expert takes ⌈factor · tokens / experts⌉ of them and no more. What does
    `capacity_factor` do in your layer?
""")
class NoCapacity(_Parts):
    def room(self, x):
        return x.shape[0] * x.shape[1]


@exercise.misconception("""
    Your capacity counts the tokens of one batch row. All tokens of the pass share the experts: batch times sequence.
""")
class CapacityOfOneRow(_Parts):
    def room(self, x):
        return math.ceil(self.capacity_factor * x.shape[1] / len(self.experts))


@exercise.misconception("""
    Your capacity is rounded down. ⌈ ⌉ rounds up, so that with a factor of 1 there is room for all tokens whatever
    their number.
""")
class CapacityRoundedDown(_Parts):
    def room(self, x):
        return int(self.capacity_factor * x.shape[0] * x.shape[1] / len(self.experts))


@exercise.misconception("""
    Your capacity is not shared out: each expert takes factor · tokens. Divide by the number of experts.
""")
class CapacityNotShared(_Parts):
    def room(self, x):
        return math.ceil(self.capacity_factor * x.shape[0] * x.shape[1])


@exercise.misconception("""
    Where an expert is full you drop the tokens that came first and keep the last ones. First come, first kept.
""")
class DropsTheEarliest(_Parts):
    def route(self, logits, capacity):
        return tuple(part.flip(0) for part in switch_route(logits.flip(0), capacity))


@exercise.misconception("""
    All experts together stop after a number of tokens, so late tokens are dropped though their expert is idle. The
    capacity is counted for each expert by itself.
""")
class OneCapacityForAll(_Parts):
    def route(self, logits, capacity):
        index, gate, _ = switch_route(logits, capacity)
        return index, gate, torch.arange(len(index)) < capacity * len(self.experts)


@exercise.misconception("""
    Your router counts places within each batch row anew, so every row gets the full capacity. Lay the tokens of all
    rows in one line before you route them.
""")
class EachRowByItself(_Parts):
    def forward(self, x):
        capacity = self.room(x)
        self.room = lambda x: capacity
        found = torch.cat([super(EachRowByItself, self).forward(row[None]) for row in x])
        del self.room
        return found


@exercise.misconception("""
    Every expert answers every token, and the probabilities mix the answers. That is a mixture of all experts, which
    costs as much as all of them. Switch asks only the likeliest one.
""")
class DenseMixture(_Parts):
    def forward(self, x):
        shares = self.router(x).softmax(-1)
        return sum(shares[..., number, None] * expert(x) for number, expert in enumerate(self.experts))


@exercise.misconception("""
    Two experts answer each token. That is how mixtures of experts were built before; what Switch showed is that the
    likeliest one alone is enough.
""")
class TopTwo(_Parts):
    def forward(self, x):
        shares = self.router(x).softmax(-1)
        best, chosen = shares.topk(2, -1)
        kept = torch.zeros_like(shares).scatter(-1, chosen, best)
        return sum(kept[..., number, None] * expert(x) for number, expert in enumerate(self.experts))


@exercise.misconception("""
    Tokens go to the expert that the router trusts **least**. Which index does `argmin` give, and which do you want?
""")
class LeastTrusted(_Parts):
    def route(self, logits, capacity):
        index, _, kept = switch_route(-logits, capacity)
        return index, logits.softmax(-1).gather(1, index[:, None])[:, 0], kept


@exercise.misconception("""
    Your experts use GELU, which is `FeedForward`'s default. Those of Switch use ReLU, as T5 does: hand the name on.
""")
class GeluExperts(_Parts):
    def activated(self, expert, rows):
        return expert.linear_2(F.gelu(expert.linear_1(rows)))


@exercise.misconception("""
    The values are right, but every expert works on every token and most of its answers are thrown away. The point of
    Switch is that a token costs as much as in one small network, however many experts there are. Pick an expert's
    tokens first, and call it with those.
""")
class EveryExpertOnEveryToken(_Parts):
    def forward(self, x):
        rows = x.flatten(0, -2)
        index, gate, kept = switch_route(self.router(rows), self.room(x))
        share = F.one_hot(index, len(self.experts)) * (gate * kept)[:, None]
        answers = torch.stack([expert(rows) for expert in self.experts], 1)
        return (share[..., None] * answers).sum(1).view_as(x)


@exercise.misconception("""
    Your layer returns a pair, as some libraries do, with the router's scores or a loss beside the output. Here it
    returns the tensor alone, so that it fits where a `FeedForward` stands.
""")
class PairReturned(_Parts):
    def forward(self, x):
        return super().forward(x), self.router(x)


@exercise.misconception("""
    Your router has a bias, `router.bias`. It is a plain matrix: pass `bias=False`.
""")
class RouterWithBias(_Parts):
    def __init__(self, d_model, d_ff, num_experts, capacity_factor):
        super().__init__(d_model, d_ff, num_experts, capacity_factor)
        self.router = torch.nn.Linear(d_model, num_experts)
