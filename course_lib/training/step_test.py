"""A step moves the weights as plain arithmetic says, whatever was left behind by the step before."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.training.step import training_step

RELATIVE = 1e-10
RATES, MAX_NORMS = (0.3, 0.1, 0.7), (0.05, 1e9, 0.2)


def small_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 7)).double()


def batch(seed):
    return torch.randint(7, (2, 3, 5), generator=torch.Generator().manual_seed(seed))


def test_three_steps_are_those_of_plain_arithmetic():
    model, by_hand = small_model(), small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=99.0)
    for seed, (rate, max_norm) in enumerate(zip(RATES, MAX_NORMS, strict=True)):
        inputs, targets = batch(seed)
        found = training_step(model, inputs, targets, optimizer, rate, max_norm)
        parameters = list(by_hand.parameters())
        loss = F.cross_entropy(by_hand(inputs).transpose(1, 2), targets)
        gradients = torch.autograd.grad(loss, parameters)
        total = torch.cat([gradient.flatten() for gradient in gradients]).norm().item()
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter -= rate * gradient * min(1, max_norm / total)
        assert found == pytest.approx((loss.item(), total), rel=RELATIVE)
    for mine, other in zip(model.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-12)
