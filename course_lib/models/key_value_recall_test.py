"""The recall test: its batches say what they should, softmax recalls, and linear attention runs out of room."""

import pytest
import torch

from course_lib.models.key_value_recall import KINDS, KeyValueRecall, recall_batch, recall_loss, recalled
from course_lib.training.loop import forever, train


def test_every_question_has_the_answer_that_was_told():
    told, answers = recall_batch(20, 6, 9, torch.Generator().manual_seed(0))
    keys, values, asked = told.unbind(-1)
    for row in range(20):
        pairs = dict(zip(keys[row].tolist(), values[row].tolist(), strict=True))
        assert len(pairs) == 6
        assert [pairs[key] for key in asked[row].tolist()] == answers[row].tolist()
    assert int(told.max()) < 9


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_gives_one_row_of_logits_per_question(kind):
    model = KeyValueRecall(kind, vocab_size=9, d_model=12, d_k=4)
    assert model(recall_batch(3, 5, 9)[0]).shape == (3, 5, 9)


@pytest.mark.slow
def test_softmax_recalls_and_a_narrow_linear_attention_does_not():
    shares = {}
    for kind in KINDS:
        torch.manual_seed(0)
        generator = torch.Generator().manual_seed(0)
        model = KeyValueRecall(kind, 64, 32, 8)
        train(model, forever(lambda g=generator: recall_batch(64, 16, 64, g)), 300, 0.01, loss=recall_loss)
        shares[kind] = recalled(model, *recall_batch(500, 16, 64, torch.Generator().manual_seed(1)))
    assert shares["softmax"] > 0.97
    assert 0.4 < shares["linear"] < 0.8


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="`pairs` must lie in 1 … 4, the number of different keys; got 5"):
        recall_batch(2, 5, 4)
    with pytest.raises(ValueError, match="`kind` must be one of 'softmax', 'linear'; got 'lineer'"):
        KeyValueRecall("lineer", 4, 4, 4)
