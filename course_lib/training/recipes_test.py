"""Recipes hold together, and an optimizer that takes the groups leaves gains and biases alone."""

import pytest
import torch

from course_lib.block import TransformerBlock
from course_lib.training.recipes import RECIPES, parameter_groups
from course_lib.training.schedules import noam_rate


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_the_usual_shape(name):
    recipe = RECIPES[name]
    assert recipe.d_ff == 4 * recipe.d_model
    assert recipe.d_model % recipe.heads == 0
    assert recipe.warmup < recipe.steps


def test_the_original_peak_is_that_of_its_schedule():
    recipe = RECIPES["original base"]
    assert recipe.peak_rate == pytest.approx(noam_rate(recipe.warmup, recipe.d_model, recipe.warmup), rel=5e-3)


def test_the_tokens_of_gpt_3_are_300_billion():
    recipe = RECIPES["GPT-3"]
    assert recipe.steps * recipe.tokens_per_step == pytest.approx(300e9, rel=0.01)


def test_only_matrices_decay():
    block = TransformerBlock(8, 2, 16)
    optimizer = torch.optim.AdamW(parameter_groups(block, weight_decay=0.5), lr=0.1)
    before = {name: parameter.detach().clone() for name, parameter in block.named_parameters()}
    for parameter in block.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in block.named_parameters():
        expected = before[name] * (0.95 if parameter.ndim > 1 else 1)
        torch.testing.assert_close(parameter.detach(), expected)
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(before)
