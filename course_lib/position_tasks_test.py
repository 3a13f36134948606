"""The two tasks by hand, and the scores against models whose answers are known."""

import jaxtyping
import pytest
import torch
from torch import nn

from course_lib.position_tasks import (
    IGNORED,
    MARKS,
    STEPS_BACK,
    TOKENS,
    VOCABULARY,
    accuracy,
    accuracy_by_place,
    best_without_order,
    latest_mark_batch,
    lookback_batch,
)


class Oracle(nn.Module):
    """Look the answer up, or be wrong in the second half of the text."""

    def __init__(self, task, good_until=None):
        super().__init__()
        self.task, self.good_until = task, good_until

    def forward(self, tokens, positions):
        labels = self.task(len(tokens), tokens.shape[1], torch.Generator().manual_seed(1))[1].clamp(min=0)
        if self.good_until is not None:
            labels[:, self.good_until :] = TOKENS
        return nn.functional.one_hot(labels, VOCABULARY).float()


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_label_is_the_token_four_steps_back():
    tokens, labels = lookback_batch(3, 9, generator())
    assert (labels[:, :STEPS_BACK] == IGNORED).all()
    assert labels[:, STEPS_BACK:].equal(tokens[:, :-STEPS_BACK])


def test_the_label_is_the_latest_marked_token():
    tokens, labels = latest_mark_batch(5, 12, generator())
    assert ((tokens >= TOKENS).sum(dim=1) == MARKS).all()
    for text, right in zip(tokens.tolist(), labels.tolist(), strict=True):
        latest = IGNORED
        for token, label in zip(text, right, strict=True):
            latest = token - TOKENS if token >= TOKENS else latest
            assert label == latest


@pytest.mark.parametrize("task", [lookback_batch, latest_mark_batch])
def test_a_model_that_knows_all_is_right_everywhere_and_half_a_model_by_half(task):
    assert accuracy(Oracle(task), task, 20) == 1
    by_place = accuracy_by_place(Oracle(task, good_until=12), task, 20)
    assert by_place[5:12].eq(1).all()
    assert by_place[12:].eq(0).all()


def test_places_without_a_label_have_no_score():
    by_place = accuracy_by_place(Oracle(lookback_batch), lookback_batch, 9)
    assert by_place[:STEPS_BACK].isnan().all()
    assert by_place[STEPS_BACK:].eq(1).all()


def test_without_order_the_best_guess_is_one_of_four_at_first_and_falls_with_length():
    assert 0.25 < best_without_order(STEPS_BACK + 1) < 0.5
    assert best_without_order(96) < best_without_order(24)


@pytest.mark.parametrize(
    ("task", "words"), [(lookback_batch, "must exceed the 4"), (latest_mark_batch, "must be at least 4")]
)
def test_a_text_that_is_too_short_is_refused(task, words, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=words):
        task(2, 3)
