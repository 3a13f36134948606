"""The smallest model: it learns to reverse, it looks where it should, and without positions it cannot."""

import pytest
import torch

from course_lib.data import DIGITS, reversal_batch
from course_lib.models.reverser import Reverser
from course_lib.training.loop import forever, train

LENGTH = 8


@pytest.fixture(autouse=True)
def full_length(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("COURSE_QUICK", raising=False)


def trained(positions, steps):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Reverser(LENGTH, positions=positions)
    history = train(model, forever(lambda: reversal_batch(64, LENGTH, generator)), steps, learning_rate=0.01)
    tokens, targets = reversal_batch(500, LENGTH, generator)
    with torch.no_grad():
        logits, weights = model(tokens)
    return history, (logits.argmax(-1) == targets).float().mean().item(), weights


def test_a_few_steps_lower_the_loss():
    history, _, _ = trained(positions=True, steps=15)
    assert history[-1] < history[0]


def test_a_hundred_steps_reverse_every_string_by_looking_at_the_mirrored_place():
    _, accuracy, weights = trained(positions=True, steps=100)
    assert accuracy > 0.99
    mirrored = weights.mean(0).flip(-1).diagonal()
    assert (mirrored > 0.9).all()


def test_without_positions_the_model_can_only_guess_a_frequent_digit_and_looks_everywhere():
    _, accuracy, weights = trained(positions=False, steps=100)
    assert 1 / DIGITS < accuracy < 0.4
    no_place_is_preferred = 0.05  # a place differs from the others only in how its digits happen to attract
    assert (weights.mean(0) - 1 / LENGTH).abs().max() < no_place_is_preferred


def test_without_positions_the_order_of_the_digits_makes_no_difference():
    torch.manual_seed(0)
    model = Reverser(LENGTH, positions=False)
    tokens = torch.arange(LENGTH).unsqueeze(0)
    order = torch.randperm(LENGTH)
    torch.testing.assert_close(model(tokens[:, order])[0], model(tokens)[0][:, order])


def test_weights_of_every_place_sum_to_one():
    _, weights = Reverser(LENGTH)(reversal_batch(3, 5, torch.Generator().manual_seed(0))[0])
    assert weights.shape == (3, 5, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 5))


def test_a_string_longer_than_the_positions_is_refused():
    with pytest.raises(ValueError, match=r"`tokens` has 9 places; the model knows only 8"):
        Reverser(LENGTH)(torch.zeros(1, 9, dtype=torch.int64))
