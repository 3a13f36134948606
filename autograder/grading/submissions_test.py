"""Finding submissions, and saying what is wrong where there are none."""

import os
from pathlib import Path

import pytest

from autograder.errors import CourseError
from autograder.grading.submissions import Submission, find_submissions, only_student

CHAPTER = "01_tiny"


@pytest.fixture
def submitted(tmp_path: Path) -> Path:
    """Return a folder with two submissions."""
    for student in ("bea", "ada"):
        folder = tmp_path / "submitted" / student / CHAPTER
        folder.mkdir(parents=True)
        (folder / f"{CHAPTER}.ipynb").touch()
    return tmp_path / "submitted"


def find(submitted: Path, chapter: str = CHAPTER) -> list[Submission]:
    """Find the submissions in a course around `submitted`."""
    return find_submissions(submitted, submitted.parent / "autograded", submitted.parent / "feedback", chapter)


def test_submissions_come_by_student(submitted: Path) -> None:
    assert [submission.student for submission in find(submitted)] == ["ada", "bea"]


def test_no_submission_says_where_they_belong(submitted: Path, tmp_path: Path) -> None:
    for place, chapter in ((submitted, "02_other"), (tmp_path / "nothing", CHAPTER)):
        with pytest.raises(CourseError, match=f"STUDENT/{chapter}/{chapter}.ipynb"):
            find(place, chapter)


def test_swapped_levels_are_recognized(tmp_path: Path) -> None:
    (tmp_path / CHAPTER / "ada").mkdir(parents=True)
    with pytest.raises(CourseError, match="swapped"):
        find(tmp_path)


def test_an_unknown_student_is_named_with_the_nearest(submitted: Path) -> None:
    with pytest.raises(CourseError, match="did you mean ada"):
        only_student(find(submitted), "adda")
    assert [item.student for item in only_student(find(submitted), "bea")] == ["bea"]


@pytest.mark.parametrize(("younger", "fresh"), [("graded", True), ("notebook", False), ("source", False)])
def test_a_grade_is_fresh_unless_submission_or_tests_are_younger(younger: str, fresh: bool, tmp_path: Path) -> None:
    paths = {name: tmp_path / name for name in ("graded", "notebook", "source")}
    for name, path in paths.items():
        path.touch()
        os.utime(path, (200, 200) if name == younger else (100, 100))
    submission = Submission("ada", paths["notebook"], paths["graded"], tmp_path)
    assert submission.is_fresh(paths["source"]) is fresh


def test_what_was_never_graded_is_not_fresh(tmp_path: Path) -> None:
    (tmp_path / "notebook").touch()
    submission = Submission("ada", tmp_path / "notebook", tmp_path / "none", tmp_path)
    assert not submission.is_fresh(tmp_path / "notebook")
