"""A mask that the framework refuses is refused in the framework's words."""

import torch

from autograder import evaluate


def test_the_framework_says_why_it_refuses_a_mask() -> None:
    verdict = evaluate(lambda mask: torch.zeros(3, 1, 1, 1, 2).bool(), "to_sdpa_mask", seed=5)
    assert "F.scaled_dot_product_attention refuses your mask, saying: " in verdict.message
