"""The task data: right answers, repeatable draws."""

import jaxtyping
import pytest
import torch

from course_lib.data import DIGITS, reversal_batch


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_targets_are_the_tokens_read_backward():
    tokens, targets = reversal_batch(3, 7, seeded())
    assert [row[::-1] for row in tokens.tolist()] == targets.tolist()


def test_every_digit_occurs_about_equally_often():
    tokens, _ = reversal_batch(1000, 10, seeded())
    counts = torch.bincount(tokens.flatten(), minlength=DIGITS)
    five_standard_deviations = 150  # √(10,000 · 0.1 · 0.9) is 30
    assert counts.shape == (DIGITS,)
    assert (counts - 1000).abs().max() < five_standard_deviations


def test_the_same_generator_state_gives_the_same_batch_and_the_global_one_is_not_touched():
    before = torch.get_rng_state()
    first, second = reversal_batch(4, 5, seeded(1))[0], reversal_batch(4, 5, seeded(1))[0]
    assert torch.equal(first, second)
    assert not torch.equal(first, reversal_batch(4, 5, seeded(2))[0])
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(("batch", "length", "name"), [(0, 3, "batch"), (3, -1, "length")])
def test_an_impossible_size_is_named(monkeypatch, batch, length, name):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1"):
        reversal_batch(batch, length)
