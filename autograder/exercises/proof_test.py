"""The proof that the checks are strong: every wrong belief is named, every right form is accepted."""

import numpy as np
import pytest

from autograder import evaluate
from autograder.exercise import Exercise, all_exercises

SEEDS = range(20)
BELIEF_SEEDS = (3, 14, 15)
MIN_MISCONCEPTIONS = 4

exercises = pytest.mark.parametrize("exercise", all_exercises(), ids=lambda exercise: exercise.name)


def _pairs(kind: str) -> list[pytest.param]:
    return [
        pytest.param(exercise, item, id=f"{exercise.name}-{item.name}")
        for exercise in all_exercises()
        for item in getattr(exercise, kind).values()
    ]


@exercises
def test_reference_passes_under_twenty_seeds(exercise: Exercise) -> None:
    for seed in SEEDS:
        verdict = evaluate(exercise.reference, exercise.name, hidden=True, seed=seed)
        assert verdict.passed, verdict.message


@pytest.mark.parametrize(("exercise", "belief"), _pairs("misconceptions"))
def test_every_misconception_is_refused_in_its_own_words(exercise: Exercise, belief) -> None:
    for seed in BELIEF_SEEDS:
        verdict = evaluate(belief.function, exercise.name, hidden=True, seed=seed)
        assert not verdict.passed
        assert verdict.misconception == belief.name, verdict.message
        assert belief.words in verdict.message


@pytest.mark.parametrize(("exercise", "form"), _pairs("alternatives"))
def test_every_accepted_alternative_passes(exercise: Exercise, form) -> None:
    for seed in SEEDS:
        verdict = evaluate(form.function, exercise.name, hidden=True, seed=seed)
        assert verdict.passed, verdict.message


@exercises
def test_there_are_enough_misconceptions_and_both_tiers(exercise: Exercise) -> None:
    assert len(exercise.misconceptions) >= MIN_MISCONCEPTIONS
    assert any(not case.hidden for case in exercise.cases)
    assert any(case.hidden for case in exercise.cases)
    assert len({case.name for case in exercise.cases}) == len(exercise.cases)


@exercises
@pytest.mark.parametrize(
    "value",
    [None, 3.0, "text", [1, 2], (None, None), object(), np.float32(1)],
    ids=lambda value: type(value).__name__,
)
def test_a_constant_result_is_refused_with_a_sentence(exercise: Exercise, value) -> None:
    verdict = evaluate(lambda *args, **kwargs: value, exercise.name, seed=1)
    assert not verdict.passed
    assert "Traceback" not in verdict.message


@exercises
def test_the_starter_is_called_unanswered(exercise: Exercise) -> None:
    def starter(*args, **kwargs):
        raise NotImplementedError

    verdict = evaluate(starter, exercise.name, seed=1)
    assert not verdict.passed
    assert "not answered yet" in verdict.message
