"""The monitor tells the ends of every series, hides the healthy run on demand, and survives what is not a number."""

import math
from xml.etree import ElementTree

import pytest

from course_lib.training.recorder import Record
from course_lib.widgets.clinic import INSTRUMENTS, clinic_explorer, draw


def record_of(losses):
    steps = len(losses)
    return Record(
        even_entropy=1.5,
        vocab_size=10,
        loss=losses,
        layer_grad_norms=[[0.25, 0.5]] * steps,
        layer_scales=[[1.0, 2.0]] * steps,
        max_score=[3.0] * steps,
        attention_entropy=[1.25] * steps,
        update_ratio=[1e-3] * steps,
    )


RECORDS = {"healthy": record_of([2.5, 1.0]), "ill": record_of([2.5, 3.5, math.nan])}


def test_the_words_tell_both_runs_and_the_picture_is_sound():
    picture, words = draw(RECORDS, "ill", "healthy")
    ElementTree.fromstring(picture)
    assert words.startswith("ill, 3 steps")
    assert "loss (nats): 2.5 to not a number (healthy: 2.5 to 1)" in words
    assert all(title in words for title in INSTRUMENTS)


def test_without_the_healthy_run_only_the_chosen_one_is_told():
    explorer = clinic_explorer(RECORDS)
    assert "healthy" in explorer.describe()
    assert "healthy" not in explorer.describe(healthy=False)


def test_patients_are_numbered_in_their_order():
    explorer = clinic_explorer({**RECORDS, "worse": RECORDS["ill"]})
    assert explorer.describe(patient=1).startswith("ill, ")
    assert explorer.describe(patient=2).startswith("worse, ")


def test_a_run_that_fails_at_once_can_be_drawn():
    records = {"healthy": RECORDS["healthy"], "dead": record_of([math.nan])}
    ElementTree.fromstring(draw(records, "dead", "healthy")[0])
    ElementTree.fromstring(draw(records, "dead", None)[0])


@pytest.mark.parametrize("records", [{}, {"healthy": RECORDS["healthy"]}, {"ill": RECORDS["ill"]}])
def test_something_to_compare_is_needed(records):
    with pytest.raises(ValueError, match="needs the run 'healthy' and another one"):
        clinic_explorer(records)
