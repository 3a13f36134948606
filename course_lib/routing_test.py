"""Routing against a queue kept token by token; the balance loss against loops, at its edges, forward and backward."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import jaxtyping
import pytest
import torch

from course_lib.routing import load_balancing_loss, switch_route

TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float32: 1e-6, torch.float64: 1e-12}


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def drawn(tokens=17, experts=4, dtype=torch.float64, seed=0):
    return torch.randn(tokens, experts, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("capacity", [0, 1, 3, 17])
def test_an_expert_takes_the_first_that_come(capacity):
    logits = drawn()
    expert_index, gate, kept = switch_route(logits, capacity)
    taken = [0] * 4
    for token, row in enumerate(logits):
        expert = max(range(4), key=lambda e: row[e].item())
        assert expert_index[token] == expert
        assert abs(gate[token] - row.exp()[expert] / row.exp().sum()) < TOLERANCE[torch.float64]
        assert kept[token] == (taken[expert] < capacity)
        taken[expert] += 1


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_the_gate_keeps_its_dtype(dtype):
    logits = drawn(dtype=dtype)
    expert_index, gate, kept = switch_route(logits, 2)
    assert (expert_index.dtype, gate.dtype, kept.dtype) == (torch.int64, dtype, torch.bool)
    assert (gate.double() - logits.double().softmax(-1).amax(-1)).abs().max() < TOLERANCE[dtype]


def test_the_first_of_equal_experts_is_chosen():
    assert switch_route(torch.zeros(2, 3), 2)[0].tolist() == [0, 0]


def test_a_gate_gives_the_router_a_gradient():
    logits = drawn().requires_grad_()
    switch_route(logits, 1)[1].sum().backward()
    assert logits.grad.abs().min() > 0


def test_a_negative_capacity_is_refused():
    with pytest.raises(ValueError, match="capacity"):
        switch_route(drawn(), -1)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_the_loss_is_the_sum_over_experts_of_share_times_probability(dtype):
    logits = drawn(dtype=dtype)
    expert_index = switch_route(logits, 5)[0]
    wanted = 0.0
    for expert in range(4):
        sent = sum(int(index) == expert for index in expert_index) / 17
        trusted = sum(row.double().softmax(-1)[expert].item() for row in logits) / 17
        wanted += 4 * sent * trusted
    loss = load_balancing_loss(logits, expert_index)
    assert loss.dtype == dtype
    assert abs(loss.double() - wanted) < TOLERANCE[dtype]


def test_perfect_balance_gives_one_and_total_collapse_gives_the_number_of_experts():
    even = 40 * torch.eye(5, dtype=torch.float64).repeat(3, 1)
    assert abs(load_balancing_loss(even, even.argmax(-1)) - 1) < TOLERANCE[torch.float64]
    collapsed = 40 * torch.eye(5, dtype=torch.float64)[:1].repeat(15, 1)
    assert abs(load_balancing_loss(collapsed, collapsed.argmax(-1)) - 5) < TOLERANCE[torch.float64]


def test_the_gradient_pushes_down_the_busiest_expert():
    logits = torch.zeros(6, 3, dtype=torch.float64, requires_grad=True)
    load_balancing_loss(logits, torch.tensor([1, 1, 1, 1, 0, 2])).backward()
    assert (logits.grad[:, 1] > 0).all()
    assert (logits.grad[:, [0, 2]] < 0).all()


def test_no_tokens_give_no_loss():
    assert load_balancing_loss(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)).item() == 0


def test_choices_that_do_not_fit_are_refused(unchecked_annotations):
    with pytest.raises(ValueError, match="`expert_index`"):
        load_balancing_loss(drawn(), torch.zeros(3, dtype=torch.int64))
