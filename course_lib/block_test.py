"""The block against the framework's layer in both norm orders, values and gradients, and by zeroing its parts."""

import jaxtyping
import pytest
import torch
from torch import nn

from course_lib.block import TransformerBlock, pre_norm_block
from course_lib.framework_block import to_torch_layer

BATCH, SEQUENCE, HEADS, D_MODEL, D_FF = 2, 5, 3, 12, 20
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
BOTH_ORDERS = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
BOTH_ACTIVATIONS = pytest.mark.parametrize("activation", ["relu", "gelu"])
BOTH_DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)


def block(dtype=torch.float64, **options):
    torch.manual_seed(0)
    made = TransformerBlock(D_MODEL, HEADS, D_FF, **options).to(dtype)
    for norm in (made.norm_1, made.norm_2):  # fresh norms, gain 1 and bias 0, would hide an exchange
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    return made


def tokens(dtype=torch.float64, seed=1):
    return torch.randn(BATCH, SEQUENCE, D_MODEL, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def causal():
    return torch.ones(SEQUENCE, SEQUENCE, dtype=torch.bool).triu(1)


@BOTH_ORDERS
@BOTH_ACTIVATIONS
@BOTH_DTYPES
def test_the_block_equals_the_frameworks_layer_with_copied_weights(norm_first, activation, dtype):
    ours, x = block(dtype, norm_first=norm_first, activation=activation), tokens(dtype)
    theirs = to_torch_layer(ours)
    for mask in (None, causal()):
        torch.testing.assert_close(ours(x, mask), theirs(x, src_mask=mask), rtol=1e-4, atol=TOLERANCE[dtype])


@BOTH_ORDERS
def test_gradients_equal_the_frameworks(norm_first):
    ours = block(norm_first=norm_first)
    theirs = to_torch_layer(ours)
    x, y = tokens().requires_grad_(), tokens().requires_grad_()
    ours(x, causal()).square().sum().backward()
    theirs(y, src_mask=causal()).square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(ours.ffn.linear_1.weight.grad, theirs.linear1.weight.grad, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(ours.norm_1.weight.grad, theirs.norm1.weight.grad, rtol=1e-9, atol=1e-11)


def test_post_norm_and_relu_are_the_defaults():
    made = TransformerBlock(D_MODEL, HEADS, D_FF)
    assert (made.norm_first, made.ffn.activation) == (False, "relu")


def silence(made):
    """Let attention and feed-forward network add nothing."""
    for linear in (made.attention.w_o, made.ffn.linear_2):
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
    return made


def test_a_silent_pre_norm_block_hands_its_input_through():
    assert torch.equal(silence(block(norm_first=True))(tokens()), tokens())


def test_a_silent_post_norm_block_normalizes_twice():
    made = silence(block())
    torch.testing.assert_close(made(tokens()), made.norm_2(made.norm_1(tokens())))


@BOTH_ORDERS
def test_reordered_tokens_give_reordered_outputs(norm_first):
    order = torch.tensor([3, 0, 4, 1, 2])
    made = block(norm_first=norm_first)
    torch.testing.assert_close(made(tokens()[:, order]), made(tokens())[:, order])


@BOTH_ORDERS
def test_a_causal_block_does_not_see_the_future(norm_first):
    made, x = block(norm_first=norm_first), tokens()
    changed = x.clone()
    changed[:, -1] += 1
    torch.testing.assert_close(made(changed, causal())[:, :-1], made(x, causal())[:, :-1])


@BOTH_ORDERS
def test_every_parameter_has_an_effect(norm_first):
    made = block(norm_first=norm_first)
    made(tokens()).square().sum().backward()
    idle = [name for name, weight in made.named_parameters() if weight.grad is None or not weight.grad.abs().max() > 0]
    assert idle == []


def test_the_function_over_given_parts_equals_the_pre_norm_block():
    made = block(norm_first=True)
    found = pre_norm_block(tokens(), made.attention, made.ffn, made.norm_1, made.norm_2)
    torch.testing.assert_close(found, made(tokens()))


def test_a_mask_that_is_not_boolean_is_refused(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(TypeError, match="`mask` must be a boolean tensor"):
        block()(tokens(), torch.zeros(SEQUENCE, SEQUENCE, dtype=torch.float64))
