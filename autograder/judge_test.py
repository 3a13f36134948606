"""The judge names the belief behind an answer, however the answer words its refusals."""

from collections.abc import Callable
from typing import Any

import pytest

from autograder.exercise import find_exercise
from autograder.guard import Heard
from autograder.judge import Verdict, judge, run_here
from course_lib.sampling import sample_token

SEEDS = (3, 14, 15)


def judged(exercise_name: str, solution: Callable[..., Any], seed: int) -> Verdict:
    """Judge a solution that is made of a known belief."""
    exercise = find_exercise(exercise_name)
    return judge(exercise, lambda program: run_here(exercise, solution, program, Heard(), ours=True), True, seed)


def in_other_words(belief: Callable[..., Any]) -> Callable[..., Any]:
    """Make a solution that does as the belief does and words every refusal itself."""

    def solution(*args: Any, **kwargs: Any) -> Any:
        try:
            return belief(*args, **kwargs)
        except ValueError:
            raise ValueError("that is not what I was made for") from None

    return solution


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("exercise", "belief"),
    [
        ("attention_with_temperature", "zero_let_through"),
        ("repaired_sinusoids", "only_odd_width_mended"),
        ("repaired_sinusoids", "cosine_left"),
        ("repaired_sinusoids", "index_left"),
    ],
)
def test_a_belief_is_told_from_its_kin_where_the_refusals_are_in_other_words(exercise, belief, seed: int) -> None:
    function = find_exercise(exercise).misconceptions[belief].function
    assert judged(exercise, in_other_words(function), seed).misconception == belief


def test_a_division_by_zero_is_known_in_the_words_of_python() -> None:
    def scaled(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
        return sample_token(logits * (1 / temperature), 1.0, top_k, top_p, generator)

    assert judged("sample_token", scaled, seed=3).misconception == "division_by_zero"


def test_an_assertion_with_words_is_known_as_an_assertion() -> None:
    def asserting(query, key, value, temperature):
        assert temperature > 0, f"the temperature should be positive, not {temperature}"
        return find_exercise("attention_with_temperature").reference(query, key, value, temperature)

    assert judged("attention_with_temperature", asserting, seed=3).misconception == "refused_by_assertion"
