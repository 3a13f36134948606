"""The reader of dates: its pieces on a model that knows nothing, and the stored band on one that has learned."""

import math
from itertools import pairwise

import pytest
import torch

from course_lib import results
from course_lib.date_words import END_ID, ISO_VOCAB, LANGUAGES, START_ID, encode_iso, split_days, written_dates
from course_lib.decoding import beam_search, greedy_decode
from course_lib.models import date_reader
from course_lib.models.date_reader import (
    MAX_WRITTEN,
    climb_and_fall,
    date_batch,
    exact,
    forced_characters,
    forced_loss,
    free_characters,
    new_date_reader,
    remember,
    train_date_reader,
    transcribe,
    writer,
)


def days_and_dates(count: int = 6):
    training, tested = split_days(torch.Generator().manual_seed(0))
    return training, written_dates(tested, count, torch.Generator().manual_seed(1))


def test_a_fresh_reader_depends_on_its_seed_alone():
    torch.manual_seed(5)
    first = new_date_reader(3).head.weight
    torch.rand(4)
    assert torch.equal(new_date_reader(3).head.weight, first)
    assert not torch.equal(new_date_reader(4).head.weight, first)


def test_a_reader_that_knows_nothing_is_near_even_chances():
    _, dates = days_and_dates(64)
    loss = forced_loss(new_date_reader(0), date_batch(dates)).item()
    assert loss == pytest.approx(math.log(ISO_VOCAB), abs=0.6)


def test_a_few_steps_bring_the_loss_down(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("COURSE_QUICK", raising=False)
    training, _ = days_and_dates()
    history = train_date_reader(new_date_reader(0), training, steps=12)
    assert len(history) == 12
    assert history[-1] < 0.8 * history[0]


def test_the_rate_climbs_to_its_peak_and_falls_to_zero():
    shares = [climb_and_fall(step / 200) for step in range(201)]
    assert shares[30] == pytest.approx(1.0)
    assert all(a < b for a, b in pairwise(shares[2:31]))
    assert all(a > b for a, b in pairwise(shares[30:]))
    assert shares[-1] == pytest.approx(0, abs=1e-12)


def test_one_row_of_memory_serves_every_beam():
    _, dates = days_and_dates(1)
    model, batch = new_date_reader(1).eval(), date_batch(dates)
    step = writer(model, remember(model, batch.source, None))
    tokens, _ = beam_search(step, START_ID, END_ID, MAX_WRITTEN, 1)
    assert greedy_decode(step, START_ID, END_ID, MAX_WRITTEN, 1)[0].tolist() == tokens
    assert len(beam_search(step, START_ID, END_ID, MAX_WRITTEN, 3)[0]) <= MAX_WRITTEN


def test_exact_compares_whole_dates():
    _, dates = days_and_dates(2)
    tokens = torch.nn.functional.pad(encode_iso([one.iso for one in dates]), (1, 0), value=START_ID)
    assert exact(tokens, dates) == [True, True]
    tokens[1, 4] = 2 if tokens[1, 4] != 2 else 3
    assert exact(tokens, dates) == [True, False]


def test_a_transcript_has_a_row_for_every_character_and_a_column_for_every_letter():
    _, dates = days_and_dates(1)
    transcript = transcribe(new_date_reader(0), dates[0].text, dates[0].iso)
    assert transcript.written == dates[0].iso + "■"
    assert transcript.weights.shape == (4, 11, len(dates[0].text))
    torch.testing.assert_close(transcript.weights.sum(-1), torch.ones(4, 11))


def test_a_date_is_exact_when_writing_alone_just_if_every_forced_character_is_right():
    _, dates = days_and_dates(40)
    torch.manual_seed(2)
    model, batch = new_date_reader(2), date_batch(dates)
    train_date_reader(model, [one.day for one in dates], steps=60)
    step = writer(model, remember(model, batch.source, batch.mask))
    alone = exact(greedy_decode(step, START_ID, END_ID, MAX_WRITTEN, len(dates)), dates)
    free = free_characters(model, remember(model, batch.source, batch.mask), len(dates))
    assert alone == (free == batch.target).all(dim=1).tolist()
    assert alone == (forced_characters(model, batch) == batch.target).all(dim=1).tolist()


def test_the_stored_result_keeps_its_band_in_every_language():
    stored = results.load("date_words")
    assert stored["least_exact"] >= 0.95
    for row in stored["rows"]:
        assert row["exact"] >= stored["least_exact"]
        assert set(row["by_language"]) == set(LANGUAGES)
        assert min(row["by_language"].values()) >= 0.9
        assert row["training_cpu_seconds"] < 60


@pytest.mark.slow
def test_a_reader_that_has_learned_keeps_the_stored_band(monkeypatch, record_property):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("COURSE_QUICK", raising=False)
    stored = results.load("date_words")
    training, dates = days_and_dates(1000)
    model, batch = new_date_reader(0), date_batch(dates)
    train_date_reader(model, training, seed=0, steps=date_reader.FULL_STEPS)
    step = writer(model, remember(model, batch.source, batch.mask))
    right = exact(greedy_decode(step, START_ID, END_ID, MAX_WRITTEN, len(dates)), dates)
    record_property("measured", f"dates exact: {sum(right) / len(right):.1%} of {len(right)} unseen")
    assert sum(right) / len(right) >= stored["least_exact"]
