"""Tuning: training in two parts is training in one, a copy goes on like its original, and the rate decides."""

import pytest
import torch

from course_lib.training.tuning import BASE, evaluate, new_trainee


def test_training_in_two_parts_is_training_in_one():
    whole, parts = new_trainee(seed=1), new_trainee(seed=1)
    whole.train(BASE, 6)
    parts.train(BASE, 2)
    parts.train(BASE, 4)
    assert whole.validation_loss() == parts.validation_loss()
    assert whole.steps == parts.steps == 6


def test_a_copy_goes_on_like_its_original():
    original, other = new_trainee(seed=1), new_trainee(seed=2)
    original.train(BASE, 4)
    other.load(original.weights())
    other.steps = original.steps
    for trainee in (original, other):
        trainee.generator = torch.Generator().manual_seed(7)
        trainee.train(BASE, 3)
    assert original.validation_loss() == other.validation_loss()


def test_a_workable_rate_learns_and_a_tiny_one_does_not():
    assert evaluate(BASE, 60) < 1.6 < evaluate({**BASE, "rate": 1e-5}, 60)


@pytest.mark.parametrize("changed", [{"num_heads": 8}, {"d_model": 16}, {"num_layers": 2}])
def test_a_config_decides_the_size(changed):
    sizes = {**BASE, **changed}
    model = new_trainee(sizes).model
    assert len(model.blocks) == sizes["num_layers"]
    assert model.head.in_features == sizes["d_model"]
    assert model.blocks[0].attention.num_heads == sizes["num_heads"]
