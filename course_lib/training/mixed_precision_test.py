"""Loss scaling follows torch.amp.GradScaler; a master copy keeps what half precision drops."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from course_lib.training.mixed_precision import (
    loss_scale_step,
    master_weight_update,
    repaired_scaled_step,
    state_bytes,
)

FLOAT32_DIGITS = 1e-6


def scaler_history(flags, scale, interval):
    """Ask GradScaler for its scale after each step, given whether that step's gradient is finite."""
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=interval)
    weight = nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    history = []
    for finite in flags:
        weight.grad = torch.full((3,), 1.0 if finite else float("inf"))
        scaler.scale(torch.zeros(()))  # a scaler is set up by its first scaled loss
        before = weight.detach().clone()
        scaler.step(optimizer)
        history.append((scaler.get_scale(), not torch.equal(before, weight.detach())))
        scaler.update()
        history[-1] = (scaler.get_scale(), history[-1][1])
    return history


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.sampled_from([1, 2, 3]))
def test_scale_and_skips_follow_the_frameworks_scaler(flags, interval):
    scale, good, ours = 1024.0, 0, []
    for finite in flags:
        grads = [torch.full((3,), 1.0 if finite else float("inf"))]
        unscaled, scale, good = loss_scale_step(grads, scale, good, interval)
        ours.append((scale, unscaled is not None))
    assert ours == scaler_history(flags, 1024.0, interval)


@pytest.mark.parametrize("bad", [float("inf"), -float("inf"), float("nan")])
def test_one_bad_entry_in_the_last_tensor_skips_the_step(bad):
    grads = [torch.ones(2, 3), torch.tensor([1.0, bad])]
    assert loss_scale_step(grads, 8.0, 5) == (None, 4.0, 0)


def test_tiny_gradients_survive_unscaling_in_float32():
    grad = (torch.tensor([1e-8, 2.0]) * 1024).half()
    unscaled, _, _ = loss_scale_step([grad], 1024.0, 0)
    assert unscaled is not None
    assert unscaled[0].dtype == torch.float32
    np.testing.assert_allclose(unscaled[0], [1e-8, 2.0], rtol=1e-2)
    assert (grad / 1024)[0] != unscaled[0][0]  # float16 has no 1e-8


def test_a_double_gradient_stays_double():
    unscaled, _, _ = loss_scale_step([torch.ones(2, dtype=torch.float64)], 4.0, 0)
    assert unscaled is not None
    assert unscaled[0].dtype == torch.float64


@pytest.mark.parametrize(("arguments", "name"), [((0.0, 0, 1), "scale"), ((1.0, 0, 0), "growth_interval")])
def test_senseless_arguments_are_named(arguments, name):
    with pytest.raises(ValueError, match=name):
        loss_scale_step([torch.ones(1)], *arguments)


def test_a_thousand_small_updates_survive_in_the_master_and_vanish_without_it():
    master, half = torch.ones(1), torch.ones(1, dtype=torch.float16)
    for _ in range(1000):
        grad = torch.full((1,), 1e-4, dtype=torch.float16)
        master, copy = master_weight_update(master, grad, 1.0)
        half = half - grad
    assert half.item() == 1.0
    assert abs(master.item() - 0.9) < 1e-4
    assert copy.dtype == torch.float16
    assert copy == master.half()


def test_the_update_is_that_of_sgd_in_float32():
    torch.manual_seed(0)
    weight, grad = nn.Parameter(torch.randn(5, 3)), torch.randn(5, 3).half()
    master, _ = master_weight_update(weight.detach().clone(), grad, 3e-3)
    weight.grad = grad.float()
    torch.optim.SGD([weight], lr=3e-3).step()
    torch.testing.assert_close(master, weight.detach(), rtol=FLOAT32_DIGITS, atol=0)


def test_a_master_in_half_precision_is_refused():
    with pytest.raises(TypeError, match="master"):
        master_weight_update(torch.ones(2).half(), torch.ones(2).half(), 0.1)


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_a_scaled_step_is_that_of_the_framework(max_norm):
    torch.manual_seed(1)
    weight = nn.Parameter(torch.randn(7))
    grad = (torch.randn(7) * 1024).half()
    master, stepped = repaired_scaled_step(weight.detach().clone(), grad, 1024.0, max_norm, 0.1)
    weight.grad = grad.float() / 1024
    nn.utils.clip_grad_norm_([weight], max_norm)
    torch.optim.SGD([weight], lr=0.1).step()
    assert stepped
    torch.testing.assert_close(master, weight.detach(), rtol=1e-5, atol=1e-6)


def test_an_overflow_leaves_the_master_as_it_is():
    master = torch.randn(3)
    new, stepped = repaired_scaled_step(master, torch.tensor([1, float("inf"), 2]).half(), 8.0, 1.0, 0.1)
    assert not stepped
    assert torch.equal(new, master)
    assert new is not master


@pytest.mark.parametrize("precision", ["float32", "mixed", "half"])
def test_bytes_of_a_parameter_are_those_of_real_tensors(precision):
    dtype = torch.float32 if precision == "float32" else torch.float16
    weight = nn.Parameter(torch.ones(10, dtype=dtype))
    weight.grad = torch.ones(10, dtype=dtype)
    kept = [weight, weight.grad]
    trained = weight
    if precision == "mixed":
        trained = nn.Parameter(weight.detach().float())
        trained.grad = weight.grad.float()  # made for the step, and freed
        kept.append(trained)
    optimizer = torch.optim.Adam([trained], eps=1e-4)
    optimizer.step()
    averages = [optimizer.state[trained][name] for name in ("exp_avg", "exp_avg_sq")]
    assert sum(tensor.nbytes for tensor in kept + averages) == 10 * state_bytes(precision).total


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="'mixed'"):
        state_bytes("int8")
