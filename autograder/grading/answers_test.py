"""Registered functions as answers that stand alone."""

import math

import pytest

from autograder.exercise import Exercise, all_exercises
from autograder.grading.answers import answer_from, definition, outer_names

FACTOR = 3


def helper(number):
    return math.floor(number) * FACTOR


def borrowed(number: int, scale: float = 2.0) -> float:
    """Use a helper, a constant and a module."""
    inner = helper(number)
    return math.sqrt(inner) * scale


def run(source: str) -> dict:
    """Run an answer cell in an empty notebook."""
    space: dict = {}
    exec(source, space)
    return space


def test_helpers_constants_and_imports_come_along() -> None:
    answer = answer_from(borrowed, "renamed")
    assert run(answer.text)["renamed"](3) == borrowed(3)
    assert not answer.borrows


def test_what_the_notebook_defines_is_not_brought_along() -> None:
    assert "def helper" not in answer_from(borrowed, "renamed", defined=["helper"]).text


def test_annotations_and_decorators_are_left_out() -> None:
    assert definition(borrowed, "renamed").startswith("def renamed(number, scale=2.0):")


def test_a_parameter_is_no_name_from_outside() -> None:
    assert outer_names("def f(helper):\n    local = helper\n    return local + math.pi + len('x')") == ["math"]


@pytest.mark.parametrize("exercise", all_exercises(), ids=lambda exercise: exercise.name)
def test_every_registered_form_defines_its_exercise_in_an_empty_notebook(exercise: Exercise) -> None:
    for form in (*exercise.misconceptions.values(), *exercise.alternatives.values()):
        assert callable(run(answer_from(form.function, exercise.name).text)[exercise.name]), form.name
