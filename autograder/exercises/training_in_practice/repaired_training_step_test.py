"""The check's own optimizer is the framework's gradient descent."""

import pytest
import torch

from autograder.exercises.training_in_practice.repaired_training_step import Desk

TOLERANCE = 1e-12


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_it_moves_as_the_framework_s_own_does(momentum: float) -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(7, 4, dtype=torch.float64, generator=generator) for _ in range(2)]
    ours, theirs = (Desk(*drawn, momentum) for _ in range(2))
    oracle = torch.optim.SGD(theirs.model.parameters(), lr=0.3, momentum=momentum)
    ours.optimizer.param_groups[0]["lr"] = 0.3
    for _ in range(4):
        gradients = [torch.randn(7, 4, dtype=torch.float64, generator=generator) for _ in range(2)]
        for desk in (ours, theirs):
            for parameter, gradient in zip(desk.weights, gradients, strict=True):
                parameter.grad = gradient.clone()
        ours.optimizer.step()
        oracle.step()
    for mine, other in zip(ours.weights, theirs.weights, strict=True):
        torch.testing.assert_close(mine, other, rtol=TOLERANCE, atol=TOLERANCE)
    ours.optimizer.zero_grad()
    assert [parameter.grad for parameter in ours.weights] == [None, None]
