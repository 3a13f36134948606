"""Switch: many feed-forward networks, and a router that sends every token to one of them."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.feed_forward import FeedForward
from course_lib.models.t5 import T5, T5Stack
from course_lib.multi_head import MultiHeadAttention
from course_lib.residual import pre_norm_step
from course_lib.routing import load_balancing_loss, switch_route

EVERY = 2  # of the blocks of a stack, one in two holds experts: Fedus et al. 2022, §2.1


class Routing(NamedTuple):
    """What a router decided about the tokens of one pass, laid out in one row: batch rows one after another."""

    logits: Float[Tensor, "token expert"]
    expert_index: Int[Tensor, " token"]
    gate: Float[Tensor, " token"]
    kept: Bool[Tensor, " token"]

    @property
    def loads(self) -> Float[Tensor, " expert"]:
        """Give the share of all tokens that each expert was chosen for, dropped ones included."""
        counts = torch.bincount(self.expert_index, minlength=self.logits.shape[1])
        return counts / max(1, len(self.expert_index))


class SwitchFeedForward(nn.Module):
    """Send each token through the one expert that its router prefers: p_i(x) · expert_i(x), i = argmax p(x).

    p(x) = softmax(router(x)). An expert takes ⌈capacity_factor · tokens / experts⌉ tokens of a pass, those that come
    first; a token beyond that gets 0, and the residual around the layer carries it on. The factor p_i is what lets
    the router learn. The last pass's decisions stay in `routing`, for `balance_loss`.

    Source: Fedus et al. 2022, §2.1 and §2.2, arXiv 2101.03961.
    """

    def __init__(self, d_model: int, d_ff: int, num_experts: int, capacity_factor: float) -> None:
        """Create the router and the experts.

        Raises:
            ValueError: there is no expert, or `capacity_factor` is not a positive number.
        """
        super().__init__()
        if num_experts < 1:
            raise ValueError(f"`num_experts` must be at least 1, got {num_experts}.")
        if not (math.isfinite(capacity_factor) and capacity_factor > 0):
            raise ValueError(f"`capacity_factor` must be a positive, finite number, got {capacity_factor}.")
        self.capacity_factor = capacity_factor
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(d_model, d_ff, activation="relu") for _ in range(num_experts))
        self.routing: Routing | None = None

    def capacity(self, tokens: int) -> int:
        """Give the number of tokens that one expert takes out of a pass of `tokens`."""
        return math.ceil(self.capacity_factor * tokens / len(self.experts))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Return what each token's expert says, weighted by the router's probability; 0 for a dropped token."""
        tokens = x.flatten(0, -2)
        logits = self.router(tokens)
        self.routing = Routing(logits, *switch_route(logits, self.capacity(len(tokens))))
        output = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            chosen = (self.routing.kept & (self.routing.expert_index == number)).nonzero().flatten()
            if len(chosen):
                said = self.routing.gate[chosen, None] * expert(tokens[chosen])
                output = output.index_add(0, chosen, said.to(output.dtype))
        return output.reshape(x.shape)


class SwitchBlock(nn.Module):
    """A pre-norm block whose feed-forward network is a set of experts.

    Source: Fedus et al. 2022, fig. 2, arXiv 2101.03961.
    """

    def __init__(self, d_model: int, num_heads: int, d_ff: int, num_experts: int, capacity_factor: float) -> None:
        """Create attention, experts and two layer norms.

        Raises:
            ValueError: `num_heads` does not divide `d_model`, or a setting of the experts is not positive.
        """
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.ffn = SwitchFeedForward(d_model, d_ff, num_experts, capacity_factor)
        self.norm_1 = nn.LayerNorm(d_model)
        self.norm_2 = nn.LayerNorm(d_model)

    def forward(
        self, x: Float[Tensor, "batch sequence d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch sequence d_model"]:
        """Return the new tokens; True in `mask` hides."""
        x = pre_norm_step(x, lambda tokens: self.attention(tokens, tokens, tokens, mask)[0], self.norm_1)
        return pre_norm_step(x, self.ffn, self.norm_2)


def switch_transformer(
    vocab_size: int, d_model: int, num_heads: int, num_layers: int, d_ff: int, num_experts: int, capacity_factor: float
) -> T5:
    """Build a T5 in which every second block of both stacks holds experts instead of one network.

    Raises:
        ValueError: `num_heads` does not divide `d_model`, or a setting of the experts is not positive.

    Source: Fedus et al. 2022, §2.1 and §2.4, arXiv 2101.03961. The paper starts its matrices ten times smaller than
    T5's and without biases; here the experts are this course's `FeedForward`, as they come.
    """
    model = T5(vocab_size, d_model, num_heads, num_layers, d_ff)
    for stack in (model.encoder, model.decoder):
        _give_experts(stack, d_model, d_ff, num_experts, capacity_factor)
    return model


def _give_experts(stack: T5Stack, d_model: int, d_ff: int, num_experts: int, capacity_factor: float) -> None:
    for number, block in enumerate(stack.blocks):
        if number % EVERY == EVERY - 1:
            block.ffn = SwitchFeedForward(d_model, d_ff, num_experts, capacity_factor)


def switch_layers(model: nn.Module) -> list[SwitchFeedForward]:
    """Find the layers of a model that hold experts, in the order in which it holds them."""
    return [module for module in model.modules() if isinstance(module, SwitchFeedForward)]


def balance_loss(model: nn.Module) -> Float[Tensor, ""]:
    """Average the balance losses of all layers with experts over the last pass; 1 where every layer is balanced.

    Each layer is judged by itself. Joined, two layers with opposite preferences would look balanced.

    Raises:
        ValueError: the model has no layer with experts, or none of its passes has happened yet.

    Source: Fedus et al. 2022, eq. 4, arXiv 2101.03961.
    """
    losses = [
        load_balancing_loss(layer.routing.logits, layer.routing.expert_index)
        for layer in switch_layers(model)
        if layer.routing is not None
    ]
    if not losses:
        raise ValueError("`model` has no layer with experts that has seen tokens; run it on a batch first.")
    return torch.stack(losses).mean()
