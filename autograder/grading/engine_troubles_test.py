"""What goes wrong around a class costs no student anything, and is told in a sentence."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.course_folder import source_path
from autograder.errors import CourseError
from autograder.grading import engine
from autograder.grading.engine import grade_chapter, planned
from autograder.grading.events import run_log
from autograder.grading.judged import JudgeEndedError
from autograder.grading.options import GradeOptions
from autograder.grading.results import read_results
from autograder.grading.stock import StockCourse
from autograder.testing.tiny_course import CHAPTER, RIGHT, hand_in, make_tiny_course, points

pytestmark = pytest.mark.slow
CELL_TIMEOUT = 8
SQUARED = "def double(x):\n    return x * x"


class OtherError(Exception):
    """An error with a number that is no OSError, as other libraries have them."""

    def __init__(self, number: int):
        """Note the number."""
        self.errno = number


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "planted"), OtherError(errno.ENFILE)])
def test_a_system_without_means_ends_the_run_in_a_sentence_and_costs_nobody_anything(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grade: Callable
) -> None:
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    hand_in(course, "ada", RIGHT)
    first = grade(course, CHAPTER)

    def planted(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch, pytest.raises(CourseError, match="This system has nothing left to give"):
        patch.setattr(engine, "grade_submission", planted)
        grade(course, CHAPTER, GradeOptions(force=True))
    assert read_results(course, CHAPTER) == first
    assert (course / "feedback" / "ada" / CHAPTER).exists()


def test_a_judge_that_ends_is_asked_anew_and_a_second_time_is_no_lasting_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grade: Callable
) -> None:
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    hand_in(course, "ada", RIGHT)
    real, calls, deaths = engine.grade_submission, [], 1

    def planted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) <= deaths:
            raise JudgeEndedError("the process that judges ended before its verdict")
        return real(*arguments)

    monkeypatch.setattr(engine, "grade_submission", planted)
    assert grade(course, CHAPTER).students["ada"].status == "graded"
    calls, deaths = [], 2
    ada = grade(course, CHAPTER, GradeOptions(force=True)).students["ada"]
    assert "the process that judges ended" in ada.warnings[0]
    assert planned(course, CHAPTER, GradeOptions()) == [("ada", True)]


def test_a_notebook_that_ends_its_process_at_once_has_no_points_for_a_reason_and_is_not_graded_again(
    tmp_path: Path, grade: Callable
) -> None:
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    source = source_path(course, CHAPTER)
    source.write_text(source.read_text().split('# %% [markdown] exercise="why"')[0])
    hand_in(course, "ada", RIGHT | {"double": "import os; os._exit(1)"})
    ada = grade(course, CHAPTER).students["ada"]
    assert (ada.status, ada.points) == ("failed", 0)
    assert "ended" in str(ada.exercises["triple"].message)
    with StockCourse(course, CHAPTER, run_log(CHAPTER)).gradebook() as book:
        assert book.find_grade("triple-test", CHAPTER, CHAPTER, "ada").auto_score == 0
    assert (course / "feedback" / "ada" / CHAPTER / f"{CHAPTER}.html").is_file()
    assert planned(course, CHAPTER, GradeOptions()) == [("ada", False)]


@pytest.mark.parametrize("limit", ["-1", "None"])
def test_a_configuration_without_a_limit_for_cells_grades(limit: str, tmp_path: Path, grade: Callable) -> None:
    course = make_tiny_course(tmp_path / "course")
    with (course / "nbgrader_config.py").open("a") as config:
        config.write(f"c.Execute.timeout = {limit}\n")
    hand_in(course, "ada", RIGHT)
    assert points(grade(course, CHAPTER), "ada")["double"] > 0


def test_a_damaged_earlier_notebook_hinders_nobody(tmp_path: Path, grade: Callable) -> None:
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    hand_in(course, "ada", RIGHT)
    first = points(grade(course, CHAPTER), "ada")
    graded = course / "autograded" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    graded.chmod(0o644)
    graded.write_text("{")
    assert points(grade(course, CHAPTER, GradeOptions(force=True)), "ada") == first


def test_without_warm_kernels_grading_refuses_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "warm_kernels_run_here", lambda: False)
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    hand_in(course, "ada", RIGHT | {"double": SQUARED})
    hand_in(course, "bea", {}).write_bytes(b"rubbish")
    with pytest.raises(CourseError, match="--sandbox none"):
        grade_chapter(course, CHAPTER)
    result = grade_chapter(course, CHAPTER, GradeOptions(sandbox="none"))
    assert points(result, "ada") == {"double": 0, "triple": 3, "why": 0}
    assert result.students["bea"].status == "failed"


def test_a_run_without_a_sandbox_that_works_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    hand_in(course, "ada", RIGHT)
    with pytest.raises(CourseError, match="must be one of"):
        grade_chapter(course, CHAPTER, GradeOptions(sandbox="paper"))
    assert read_results(course, CHAPTER).students == {}
