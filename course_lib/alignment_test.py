"""Entropy and direction of attention maps, on maps whose answers are known."""

import math

import pytest
import torch

from course_lib.alignment import alignment, attention_entropy


def test_entropy_is_zero_for_one_key_and_the_logarithm_for_even_shares():
    weights = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.25] * 4, [0.5, 0.5, 0.0, 0.0], [0.0] * 4], dtype=torch.float64)
    expected = torch.tensor([0.0, math.log(4), math.log(2), 0.0], dtype=torch.float64)
    torch.testing.assert_close(attention_entropy(weights), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_entropy_equals_the_framework_distribution(dtype):
    weights = torch.randn(2, 3, 4, 5, dtype=dtype).softmax(-1)
    torch.testing.assert_close(attention_entropy(weights), torch.distributions.Categorical(weights).entropy())


@pytest.mark.parametrize(
    ("best", "fraction"),
    [([0, 1, 2, 3], 1.0), ([3, 2, 1, 0], 0.0), ([1, 1, 1, 1], 1.0), ([0, 2, 1, 3], 2 / 3), ([2], 1.0)],
    ids=["forward", "backward", "standing", "one step back", "one query"],
)
def test_alignment_counts_the_steps_that_do_not_go_back(best, fraction):
    weights = 0.1 + torch.nn.functional.one_hot(torch.tensor(best), 5)
    places, found = alignment(weights / weights.sum(-1, keepdim=True))
    assert places.tolist() == best
    assert found == pytest.approx(fraction)
