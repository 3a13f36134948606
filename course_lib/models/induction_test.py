"""A model of attention alone: causal, of the right shapes, and able to learn what the chapter says it learns."""

import pytest
import torch

from course_lib.models.induction import AttentionOnly
from course_lib.recall_tasks import UNSCORED, induction_batch, two_lookups_batch
from course_lib.training.loop import forever, train

VOCAB, LENGTH, HEADS, LAYERS = 11, 12, 2, 3


@pytest.fixture(autouse=True)
def full_length(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("COURSE_QUICK", raising=False)


def model(answers=1, seed=0, layers=LAYERS, heads=HEADS):
    torch.manual_seed(seed)
    return AttentionOnly(VOCAB, LENGTH, 16, heads, layers, answers)


def test_it_names_the_asked_number_of_tokens_and_shows_every_map():
    logits, maps = model(answers=2)(torch.zeros(5, LENGTH - 1, dtype=torch.int64))
    assert logits.shape == (5, LENGTH - 1, 2, VOCAB)
    assert [tuple(weights.shape) for weights in maps] == [(5, HEADS, LENGTH - 1, LENGTH - 1)] * LAYERS


def test_a_later_token_changes_nothing_before_it():
    tokens = torch.randint(VOCAB, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    changed = tokens.clone()
    changed[:, 7] = (changed[:, 7] + 1) % VOCAB
    before, after = (model()(sequence)[0] for sequence in (tokens, changed))
    assert torch.equal(before[:, :7], after[:, :7])
    assert not torch.equal(before[:, 7:], after[:, 7:])


def test_more_tokens_than_positions_are_refused():
    with pytest.raises(ValueError, match=f"`tokens` has {LENGTH + 1} places; the model knows only {LENGTH}"):
        model()(torch.zeros(1, LENGTH + 1, dtype=torch.int64))


def accuracy(trained, batch):
    tokens, targets = batch
    with torch.no_grad():
        found = trained(tokens)[0].argmax(-1)
    scored = targets != UNSCORED
    return (found == targets)[scored].double().mean().item()


def test_one_layer_learns_to_look_back_a_fixed_number_of_places():
    generator = torch.Generator().manual_seed(0)
    small = model(answers=2, layers=1, heads=4)
    batches = forever(lambda: two_lookups_batch(64, LENGTH, VOCAB, (1, 3), generator))
    train(small, batches, steps=150, learning_rate=0.01)
    assert accuracy(small, next(iter(batches))) > 0.95


def test_one_layer_solves_induction_at_a_fixed_distance_only():
    found = {}
    for distance in (None, 6):
        generator = torch.Generator().manual_seed(0)
        small = model(layers=1)
        batches = forever(lambda: induction_batch(64, LENGTH, VOCAB, 4, generator, distance))  # noqa: B023
        train(small, batches, steps=150, learning_rate=0.01)
        found[distance] = accuracy(small, next(iter(batches)))
    assert found[6] > 0.9
    assert found[None] < 0.6
