"""The formula of activations is met by a real block, and by PyTorch's own checkpointing."""

from functools import partial

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.activation_memory import (
    DropoutBlock,
    activation_bytes,
    counted_activation_bytes,
    dropout_stack,
    run_stack,
)

SMALL_TERMS = 0.005  # means and deviations of the norms, which the formula leaves out
SIZES = [(2, 128, 64, 4, 2), (1, 512, 256, 8, 3), (4, 96, 320, 5, 1)]


def on_meta(batch, sequence, d_model, dtype=torch.bfloat16):
    return torch.empty(batch, sequence, d_model, dtype=dtype, device="meta")


@pytest.mark.parametrize(("batch", "sequence", "d_model", "heads", "layers"), SIZES)
def test_the_formula_is_what_a_real_stack_keeps(batch, sequence, d_model, heads, layers):
    stack = dropout_stack(d_model, heads, layers)
    kept, _ = counted_activation_bytes(partial(run_stack, stack), on_meta(batch, sequence, d_model))
    assert kept == pytest.approx(activation_bytes(batch, sequence, d_model, heads, layers), rel=SMALL_TERMS)


@pytest.mark.parametrize(("batch", "sequence", "d_model", "heads", "layers"), SIZES)
def test_checkpointing_keeps_the_input_of_every_layer_and_no_more(batch, sequence, d_model, heads, layers):
    stack = dropout_stack(d_model, heads, layers)
    kept, peak = counted_activation_bytes(partial(run_stack, stack, every=1), on_meta(batch, sequence, d_model))
    assert kept == activation_bytes(batch, sequence, d_model, heads, layers, checkpointing=True)
    assert peak > kept


def test_checkpointing_lowers_the_peak_and_costs_one_more_forward_pass():
    stack, x = dropout_stack(64, 4, 6), on_meta(16, 128, 64)
    peaks, flops = [], []
    for every in (None, 1):
        forward = partial(run_stack, stack, every=every)
        peaks.append(counted_activation_bytes(forward, x)[1])
        with FlopCounterMode(display=False) as counter:  # it keeps tensors alive, so the peak is counted without it
            forward(x.clone().requires_grad_()).sum().backward()
        flops.append(counter.get_total_flops())
    assert peaks[1] < peaks[0] / 2
    assert flops[1] / flops[0] == pytest.approx(4 / 3)


def test_checkpointed_gradients_are_those_of_the_plain_stack():
    torch.manual_seed(0)
    stack = torch.nn.ModuleList(DropoutBlock(16, 2, dropout=0.0) for _ in range(3))
    x = torch.randn(2, 5, 16)
    found = []
    for every in (None, 1, 2):
        given = x.clone().requires_grad_()
        run_stack(stack, given, every).square().sum().backward()
        found.append(given.grad)
    torch.testing.assert_close(found[1], found[0])
    torch.testing.assert_close(found[2], found[0])


def test_twice_the_itemsize_is_twice_the_memory():
    assert activation_bytes(3, 5, 7, 2, 4, itemsize=4) == 2 * activation_bytes(3, 5, 7, 2, 4)
    checked = partial(activation_bytes, 3, 5, 7, 2, 4, True)
    assert checked(itemsize=4) == 2 * checked() == 2 * 4 * 3 * 5 * 7 * 2


def test_a_size_below_one_is_named():
    with pytest.raises(ValueError, match="heads"):
        activation_bytes(1, 1, 1, 0, 1)
