"""Starting points: a simulated stream keeps its size, and even logits give the loss that is foretold."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.training.initialization import initial_loss, residual_init_std

SIMULATION_BAND = 0.05  # of 200,000 drawn numbers, far more than their noise


@pytest.mark.parametrize("num_layers", [1, 3, 48])
def test_as_many_additions_as_a_stack_makes_give_the_base_again(num_layers):
    generator = torch.Generator().manual_seed(0)
    terms = torch.randn(2 * num_layers, 200_000, generator=generator) * residual_init_std(num_layers, base=0.7)
    assert terms.sum(dim=0).std().item() == pytest.approx(0.7, rel=SIMULATION_BAND)


def test_gpt_2_s_own_numbers():
    # Source: 12 layers and 0.02, the constants of the published GPT-2 code's successors.
    assert residual_init_std(12) == pytest.approx(0.00408248, rel=1e-5)


@pytest.mark.parametrize("vocab_size", [1, 2, 10, 50257])
def test_even_logits_have_the_initial_loss(vocab_size):
    even = torch.zeros(3, vocab_size, dtype=torch.float64)
    found = F.cross_entropy(even, torch.zeros(3, dtype=torch.long)).item()
    assert initial_loss(vocab_size) == pytest.approx(found, abs=1e-12)


def test_a_loss_is_never_negative():
    assert initial_loss(1) == 0.0
    assert math.isclose(initial_loss(10), 2.302585, rel_tol=1e-6)


@pytest.mark.parametrize(("function", "name"), [(residual_init_std, "num_layers"), (initial_loss, "vocab_size")])
def test_an_impossible_count_is_named(function, name):
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1, got 0"):
        function(0)
