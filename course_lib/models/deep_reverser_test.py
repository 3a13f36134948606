"""Deep stacks: each kind is wired as its name says, and the placement of norms decides what learns."""

import pytest
import torch
from torch import nn

from course_lib.data import DIGITS
from course_lib.models.deep_reverser import HIDDEN_PER_FEATURE, STEPS, Block, DeepReverser
from course_lib.models.deep_training import FULL_STEPS, LENGTH, train_deep_reverser

D_MODEL, HEADS = 8, 2


@pytest.fixture(autouse=True)
def full_length(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("COURSE_QUICK", raising=False)


def framework_layer(block, norm_first):
    """Make the framework's encoder layer with the weights of a block."""
    hidden = HIDDEN_PER_FEATURE * D_MODEL
    layer = nn.TransformerEncoderLayer(D_MODEL, HEADS, hidden, dropout=0.0, batch_first=True, norm_first=norm_first)
    attention = block.attention
    projections = (attention.w_q, attention.w_k, attention.w_v)
    layer.self_attn.in_proj_weight.data = torch.cat([linear.weight for linear in projections])
    layer.self_attn.in_proj_bias.data = torch.cat([linear.bias for linear in projections])
    layer.self_attn.out_proj.load_state_dict(attention.w_o.state_dict())
    layer.linear1.load_state_dict(block.ffn[0].state_dict())
    layer.linear2.load_state_dict(block.ffn[2].state_dict())
    layer.norm1.load_state_dict(block.norm_1.state_dict())
    layer.norm2.load_state_dict(block.norm_2.state_dict())
    return layer


@pytest.mark.parametrize("kind", ["pre-norm", "post-norm"])
def test_block_equals_the_frameworks_layer_in_both_norm_orders(kind):
    torch.manual_seed(0)
    block, x = Block(D_MODEL, HEADS, kind, nn.LayerNorm), torch.randn(3, 5, D_MODEL)
    layer = framework_layer(block, norm_first=kind == "pre-norm")
    torch.testing.assert_close(block(x), layer(x))


def test_sublayers_that_give_zero_show_what_each_kind_leaves_of_the_stream():
    x = 1 + 3 * torch.randn(2, 3, D_MODEL, generator=torch.Generator().manual_seed(0))
    norm = nn.LayerNorm(D_MODEL)
    left = {"pre-norm": x, "post-norm": norm(norm(x)), "no norm": x, "no skip": 0 * x, "neither": 0 * x}
    for kind, expected in left.items():
        block = Block(D_MODEL, HEADS, kind, nn.LayerNorm)
        for linear in (block.attention.w_o, block.ffn[2]):
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)
        torch.testing.assert_close(block(x), expected)
    assert left.keys() == STEPS.keys()


@pytest.mark.parametrize("kind", STEPS)
def test_every_kind_gives_logits_and_a_gradient_for_every_parameter_that_it_uses(kind):
    model = DeepReverser(5, kind, 3, D_MODEL)
    logits = model(torch.randint(DIGITS, (4, 5)))
    assert logits.shape == (4, 5, DIGITS)
    logits.square().sum().backward()
    unused = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    without_norms = kind in ("no norm", "neither")
    assert all("norm" in name for name in unused)
    assert bool(unused) == without_norms


def test_only_the_pre_norm_stack_has_a_final_norm_and_the_norm_can_be_chosen():
    for kind in STEPS:
        model = DeepReverser(5, kind, 1, norm=nn.RMSNorm)
        assert isinstance(model.final_norm, nn.RMSNorm if kind == "pre-norm" else nn.Identity)
        assert isinstance(model.blocks[0].norm_1, nn.RMSNorm)


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"`kind` must be one of 'pre-norm', .*, got 'sandwich'"):
        DeepReverser(5, "sandwich", 1)


def test_a_shallow_stack_learns_and_the_same_seed_repeats_it():
    first, again = (train_deep_reverser("pre-norm", 1, 1e-2, steps=30, seed=3) for _ in range(2))
    assert first == again
    assert first.history[-1] < first.history[0] / 2
    assert first.accuracy > 3 / DIGITS
    assert train_deep_reverser("pre-norm", 1, 1e-2, steps=30, seed=4).history != first.history


def test_warm_up_starts_with_small_steps():
    still = train_deep_reverser("post-norm", 1, 1e-2, steps=2, warmup=10_000)
    moving = train_deep_reverser("post-norm", 1, 1e-2, steps=2)
    assert still.history[0] == moving.history[0]
    assert abs(still.history[1] - moving.history[1]) > 1e-3


def test_a_quick_run_takes_two_steps(monkeypatch):
    monkeypatch.setenv("COURSE_QUICK", "1")
    assert len(train_deep_reverser("pre-norm", 1, 1e-3).history) == 2


def test_a_loss_that_overflows_ends_the_training_without_a_right_digit():
    outcome = train_deep_reverser("no norm", 6, 1e4, steps=40)
    assert outcome.accuracy < 2 / DIGITS
    assert len(outcome.history) <= 40


def test_constants_describe_the_task_that_is_told():
    assert (LENGTH, FULL_STEPS) == (6, 100)
