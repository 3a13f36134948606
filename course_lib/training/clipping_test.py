"""Clipping: the framework's function is the oracle; direction is kept, short gradients are left alone."""

import copy

import pytest
import torch
from torch import nn

from course_lib.training.clipping import clip_gradients

TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-5}  # the framework adds 1e-6 to the length


def model_with_gradients(dtype, scale=1.0):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)).to(dtype)
    for parameter in model.parameters():
        parameter.grad = scale * torch.randn_like(parameter)
    return model


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("max_norm", [0.01, 1.0, 1000.0])
def test_it_does_what_the_framework_does(dtype, max_norm):
    ours = model_with_gradients(dtype)
    theirs = copy.deepcopy(ours)
    for copied, parameter in zip(theirs.parameters(), ours.parameters(), strict=True):
        copied.grad = parameter.grad.clone()
    expected = nn.utils.clip_grad_norm_(theirs.parameters(), max_norm)
    assert clip_gradients(ours.parameters(), max_norm) == pytest.approx(expected.item(), rel=TOLERANCES[dtype])
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=TOLERANCES[dtype], atol=0)


def test_after_clipping_the_length_is_the_one_allowed():
    model = model_with_gradients(torch.float64, scale=50)
    clip_gradients(model.parameters(), 2.5)
    assert clip_gradients(model.parameters(), 1e9) == pytest.approx(2.5, rel=1e-12)


def test_parameters_without_a_gradient_are_passed_over():
    model = model_with_gradients(torch.float32)
    first = next(model.parameters())
    first.grad = None
    assert clip_gradients(model.parameters(), 1e-3) > 0
    assert first.grad is None
    assert clip_gradients([first], 1.0) == 0.0


def test_an_impossible_length_is_named():
    with pytest.raises(ValueError, match="`max_norm` must be above 0, got 0"):
        clip_gradients([], 0)
