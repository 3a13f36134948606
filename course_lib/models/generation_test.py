"""Generation: greedy follows the model, seeds repeat, long prompts are cut to what the model can read."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.models.generation import generate, next_logits
from course_lib.models.gpt import GPT


class Counts(nn.Module):
    """Say that the next token is the last one plus 1."""

    def __init__(self, max_length=None):
        super().__init__()
        if max_length:
            self.max_length = max_length
        self.lengths = []

    def forward(self, tokens):
        self.lengths.append(tokens.shape[1])
        return 9.0 * F.one_hot((tokens + 1) % 7, 7).float()


def test_greedy_takes_the_likeliest_token_each_time():
    assert generate(Counts(), torch.tensor([4, 5]), 4, temperature=0).tolist() == [4, 5, 6, 0, 1, 2]


def test_no_more_is_read_than_the_model_has_positions_for():
    model = Counts(max_length=3)
    generate(model, torch.tensor([0]), 5, temperature=0)
    assert model.lengths == [1, 2, 3, 3, 3]


def test_the_same_seed_writes_the_same_text():
    torch.manual_seed(0)
    model = GPT(11, 8, 2, 1, 6)
    prompt = torch.tensor([1, 2])
    first, second, third = (
        generate(model, prompt, 12, generator=torch.Generator().manual_seed(seed)).tolist() for seed in (3, 3, 4)
    )
    assert first == second != third
    assert prompt.tolist() == [1, 2]


def test_no_gradient_is_kept():
    assert not next_logits(GPT(11, 8, 2, 1, 6), torch.tensor([1])).requires_grad


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match="`tokens` is empty"):
        generate(Counts(), torch.tensor([], dtype=torch.long), 1)
