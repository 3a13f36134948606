"""The shape and the file of results."""

import json
from pathlib import Path

import pytest

from autograder.errors import CourseError
from autograder.grading.results import (
    ClassResult,
    ExerciseResult,
    Status,
    StudentResult,
    overall_status,
    read_results,
    results_path,
    write_results,
)

SHAPE = {"points", "maximum", "status", "misconception", "message", "seconds", "seed"}


def class_of_one() -> ClassResult:
    """Return a class with one submission."""
    exercise = ExerciseResult(1, 3, misconception="squared", message="Not squared, é.", seconds=0.1, seed=4)
    return ClassResult("01_tiny", {"ada": StudentResult("graded", ["mended"], [], {"double": exercise})})


def test_the_file_has_exactly_the_agreed_keys(tmp_path: Path) -> None:
    content = json.loads(write_results(tmp_path, class_of_one()).read_text(encoding="utf-8"))
    assert content.keys() == {"chapter", "students"}
    assert content["students"]["ada"].keys() == {"status", "repairs", "warnings", "exercises", "penalty"}
    assert content["students"]["ada"]["exercises"]["double"].keys() == SHAPE


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write_results(tmp_path, class_of_one())
    assert read_results(tmp_path, "01_tiny") == class_of_one()


def test_a_file_from_before_there_was_a_penalty_is_read(tmp_path: Path) -> None:
    path = write_results(tmp_path, class_of_one())
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["students"]["ada"]["penalty"]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert read_results(tmp_path, "01_tiny") == class_of_one()


def test_a_penalty_is_taken_off_and_said_and_no_points_are_below_zero() -> None:
    student = class_of_one().students["ada"]
    assert (student.standing, student.noticed) == (1, [])
    student.penalty = 0.25
    assert student.standing == 0.75
    assert student.noticed == ["0.25 of 1 points are taken off for handing in late."]
    student.penalty = 4
    assert student.standing == 0


def test_no_file_is_an_empty_class(tmp_path: Path) -> None:
    assert read_results(tmp_path, "01_tiny") == ClassResult("01_tiny")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"students": {"ada": {}}}'])
def test_a_damaged_file_is_refused_in_a_sentence(content: str, tmp_path: Path) -> None:
    path = results_path(tmp_path, "01_tiny")
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(CourseError, match="damaged"):
        read_results(tmp_path, "01_tiny")


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["graded", "graded"], "graded"),
        (["graded", "needs_manual"], "needs_manual"),
        (["needs_manual", "failed"], "partly"),
        (["graded", "partly"], "partly"),
        (["failed", "failed"], "failed"),
    ],
)
def test_the_status_of_a_submission_follows_from_its_exercises(statuses: list[Status], expected: str) -> None:
    exercises = {str(number): ExerciseResult(0, 1, status) for number, status in enumerate(statuses)}
    assert overall_status(exercises) == expected
