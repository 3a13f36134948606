"""A model that sees what its mask shows, and beats chance on random tokens only by looking ahead."""

import math

import pytest
import torch

from course_lib.dependence import dependence
from course_lib.masks import causal_mask
from course_lib.models.encoder_lm import EncoderLanguageModel
from course_lib.training.loop import forever, train

VOCAB, LENGTH = 8, 6


@pytest.fixture(autouse=True)
def full_length(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("COURSE_QUICK", raising=False)


def model(mask):
    torch.manual_seed(0)
    return EncoderLanguageModel(VOCAB, LENGTH, mask)


def random_batch(generator):
    tokens = torch.randint(VOCAB, (64, LENGTH + 1), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def test_the_whole_model_depends_on_what_its_mask_shows():
    for mask in (causal_mask(LENGTH), torch.zeros(LENGTH, LENGTH, dtype=torch.bool)):
        language_model = model(mask)
        x = language_model.embedding(torch.arange(LENGTH)).detach()
        found = dependence(lambda rows, read=language_model.read: read(rows[None])[0], x)
        assert torch.equal(found, ~mask)


def test_random_tokens_cannot_be_foretold_unless_the_future_is_shown():
    floor = math.log(VOCAB)
    finals = {}
    for name, mask in (("causal", causal_mask(LENGTH)), ("none", None)):
        generator = torch.Generator().manual_seed(0)
        history = train(model(mask), forever(lambda g=generator: random_batch(g)), steps=150, learning_rate=3e-3)
        finals[name] = sum(history[-10:]) / 10
    assert floor - 0.05 < finals["causal"] < floor + 0.1
    assert finals["none"] < 0.7 * floor
