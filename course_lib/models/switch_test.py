"""The Switch layer against a loop over tokens, its balance loss layer by layer, and its experts' work counted."""

import math

import pytest
import torch

from course_lib.feed_forward import FeedForward
from course_lib.models.switch import (
    SwitchBlock,
    SwitchFeedForward,
    balance_loss,
    switch_layers,
    switch_transformer,
)

TOLERANCE = 1e-6
WIDTH, HIDDEN, EXPERTS = 6, 10, 4


def layer_for(factor=1.0, seed=0, experts=EXPERTS):
    torch.manual_seed(seed)
    return SwitchFeedForward(WIDTH, HIDDEN, experts, factor)


def token_by_token(layer: SwitchFeedForward, x: torch.Tensor) -> torch.Tensor:
    """Route one token after another, with a free seat counter per expert."""
    rows = x.reshape(-1, WIDTH)
    seats = [math.ceil(layer.capacity_factor * len(rows) / len(layer.experts))] * len(layer.experts)
    output = []
    for row in rows:
        shares = torch.softmax(layer.router.weight @ row, dim=0)
        chosen = int(shares.argmax())
        seats[chosen] -= 1
        output.append(shares[chosen] * layer.experts[chosen](row) if seats[chosen] >= 0 else torch.zeros(WIDTH))
    return torch.stack(output).reshape(x.shape)


@pytest.mark.parametrize("factor", [0.3, 0.5, 1.0, 1.25, 8.0])
def test_it_equals_routing_token_by_token(factor):
    layer = layer_for(factor)
    x = torch.randn(3, 5, WIDTH)
    torch.testing.assert_close(layer(x), token_by_token(layer, x), rtol=0, atol=TOLERANCE)


def test_gradients_equal_those_of_routing_token_by_token():
    layer, x = layer_for(0.75), torch.randn(3, 5, WIDTH)
    found = []
    for forward in (layer, lambda tokens: token_by_token(layer, tokens)):
        tokens = x.clone().requires_grad_()
        output = (forward(tokens) * torch.arange(WIDTH)).sum()
        found.append(torch.autograd.grad(output, [tokens, layer.router.weight, layer.experts[0].linear_1.weight]))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert found[0][1].abs().max() > 0


def test_each_token_is_worked_on_once_at_most():
    layer, seen = layer_for(8.0), []
    for expert in layer.experts:
        expert.register_forward_hook(lambda _, inputs, output: seen.append(len(inputs[0])))
    layer(torch.randn(3, 5, WIDTH))
    assert sum(seen) == 15


def test_a_dropped_token_gives_zero():
    layer = layer_for(0.5)
    with torch.no_grad():
        layer.router.weight.zero_()  # every token prefers expert 0
    output = layer(torch.randn(2, 8, WIDTH))
    assert layer.capacity(16) == 2
    assert (output[0, :2] != 0).any(-1).all()
    assert (output[0, 2:] == 0).all()
    assert (output[1] == 0).all()
    assert layer.routing.kept.sum() == 2
    assert layer.routing.loads.tolist() == [1, 0, 0, 0]


def test_one_expert_is_a_plain_network():
    layer, x = layer_for(experts=1), torch.randn(2, 3, WIDTH)
    expert = FeedForward(WIDTH, HIDDEN, activation="relu")
    expert.load_state_dict(layer.experts[0].state_dict())
    torch.testing.assert_close(layer(x), expert(x), rtol=0, atol=TOLERANCE)


def test_half_precision_goes_in_and_comes_out():
    layer = layer_for().to(torch.bfloat16)
    output = layer(torch.randn(2, 3, WIDTH, dtype=torch.bfloat16))
    assert output.dtype == torch.bfloat16
    assert output.isfinite().all()


@pytest.mark.parametrize(("experts", "factor", "name"), [(0, 1.0, "num_experts"), (2, 0.0, "capacity_factor")])
def test_bad_settings_are_refused(experts, factor, name):
    with pytest.raises(ValueError, match=name):
        SwitchFeedForward(WIDTH, HIDDEN, experts, factor)


def test_the_balance_loss_judges_each_layer_by_itself():
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(SwitchFeedForward(2, 3, 2, 8.0) for _ in range(2)))
    x = torch.ones(4, 2)
    with torch.no_grad():
        model[0].router.weight.copy_(torch.tensor([[9.0, 9.0], [0.0, 0.0]]))
        model[1].router.weight.copy_(torch.tensor([[0.0, 0.0], [9.0, 9.0]]))
    for layer in model:
        layer(x)  # opposite preferences, which joined would look balanced
    assert balance_loss(model).item() == pytest.approx(2.0, abs=1e-5)


def test_the_balance_loss_needs_a_pass_first():
    with pytest.raises(ValueError, match="no layer with experts"):
        balance_loss(SwitchBlock(WIDTH, 2, HIDDEN, EXPERTS, 1.0))


def test_a_block_adds_nothing_for_a_dropped_token_but_attention():
    torch.manual_seed(0)
    block = SwitchBlock(WIDTH, 2, HIDDEN, EXPERTS, capacity_factor=1e-3)
    with torch.no_grad():
        block.ffn.router.weight.zero_()
    x = torch.randn(1, 5, WIDTH)
    normalized = block.norm_1(x)
    attended = x + block.attention(normalized, normalized, normalized)[0]
    output = block(x)
    torch.testing.assert_close(output[:, 1:], attended[:, 1:], rtol=0, atol=TOLERANCE)
    assert (output[:, 0] - attended[:, 0]).abs().max() > TOLERANCE


def test_every_second_block_of_both_stacks_holds_experts_and_learns_from_the_balance():
    torch.manual_seed(0)
    model = switch_transformer(31, 12, 3, num_layers=4, d_ff=20, num_experts=EXPERTS, capacity_factor=1.25)
    assert len(switch_layers(model)) == 4
    tokens = torch.randint(1, 31, (2, 7))
    logits = model(tokens, tokens)
    assert logits.shape == (2, 7, 31)
    balance_loss(model).backward()
    assert all(layer.router.weight.grad.abs().sum() > 0 for layer in switch_layers(model))
