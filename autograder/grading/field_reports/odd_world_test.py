"""Odd surroundings: a locale of ASCII, no search path, ids in other letters, times that a student wrote."""

import json
import os
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import nbformat
import pytest

from autograder.build import answered_notebook
from autograder.collecting.collect import Collected, collect
from autograder.collecting.roster import read_roster
from autograder.grading.field_reports.of_files import EMOJI
from autograder.grading.field_reports.report import BOTH, HandIn
from autograder.grading.files import source_text
from autograder.grading.kit import ChapterKit, chapter_kit
from autograder.grading.limits import Limits
from autograder.grading.pool import KernelPool
from autograder.grading.results import read_results
from autograder.grading.running import Terms
from autograder.grading.step import grade_submission
from autograder.grading.stock import load_configuration
from autograder.testing.tiny_course import CHAPTER, RIGHT, make_tiny_course

NOTEBOOK = f"{CHAPTER}.ipynb"
ROSTER = "id,first_name,last_name,email\nABC1,Ada,Lovelace,ada@uni.example\n"
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
TOLD = 600  # seconds after which a run has hung


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Make a course with a roster."""
    course = make_tiny_course(tmp_path / "course")
    (course / "roster.csv").write_text(ROSTER, encoding="utf-8")
    return course


def take(course: Path, system: str, files: dict[str, str]) -> Collected:
    """Collect an archive of these files."""
    path = course.parent / "handed-in.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return collect(course, path, system, read_roster(course / "roster.csv"), [CHAPTER])


@pytest.mark.slow
def test_a_class_is_graded_in_a_locale_of_ascii_without_a_search_path(course: Path) -> None:
    HandIn("emoji", answers=EMOJI | {"why-written": "F\xfcr \u221e \N{HOT BEVERAGE}."}).put_into(course, "ada")
    command = [sys.executable, "-X", "warn_default_encoding", "-m", "autograder.cli"]
    done = subprocess.run(
        [*command, "grade", CHAPTER, "--course", str(course), "--workers", "1"],
        env={**os.environ, **ASCII, "PATH": os.fspath(course)},
        capture_output=True,
        timeout=TOLD,
        check=False,
    )
    told = done.stderr.decode(errors="replace")
    assert done.returncode == 0, told
    assert [line for line in told.splitlines() if "EncodingWarning" in line and "autograder" in line] == []
    result = read_results(course, CHAPTER).students["ada"]
    assert (result.points, result.status) == (BOTH, "needs_manual")
    page = course / "feedback" / "ada" / CHAPTER / f"{CHAPTER}.html"
    assert "\N{HOT BEVERAGE}" in page.read_text(encoding="utf-8")
    with closing(connect(course / "gradebook.db")) as book:
        assert len(book.execute("SELECT version_num FROM alembic_version").fetchall()) == 1


def test_the_time_of_the_lms_replaces_one_that_was_handed_in(course: Path) -> None:
    folder = "Week 1_ABC1_attempt_2026-01-31-22-10-05"
    take(course, "blackboard", {f"{folder}_{NOTEBOOK}": "{}", f"{folder}_timestamp.txt": "2001-01-01 00:00:00 UTC"})
    stamp = (course / "submitted" / "ABC1" / CHAPTER / "timestamp.txt").read_text(encoding="utf-8")
    assert "2001" not in stamp
    assert stamp.startswith(("2026-01-31", "2026-02-01"))  # in UTC


def test_an_id_in_other_letters_is_the_same_student_and_is_told(course: Path) -> None:
    done = take(course, "folder", {f"abc1/{NOTEBOOK}": "{}"})
    assert done.students == ["ABC1"]
    assert [path.name for path in (course / "submitted").iterdir()] == ["ABC1"]
    assert any("abc1" in note and "ABC1" in note for note in done.notes)


@pytest.fixture
def kit_without_points(course: Path) -> ChapterKit:
    """Give the chapter with a test that gives no points."""
    source = nbformat.reads(source_text(course, CHAPTER, course), as_version=nbformat.NO_CONVERT)
    for cell in source.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("grade_id") == "double-test":
            marks["points"] = 0
    return chapter_kit(CHAPTER, source, load_configuration(course))


@pytest.mark.slow
@pytest.mark.parametrize(("answers", "points"), [(RIGHT, 2.0), ({}, 0.0)])
def test_a_test_of_no_points_is_run_and_gives_none(
    answers: dict[str, str], points: float, course: Path, kit_without_points: ChapterKit, warm_pool: KernelPool
) -> None:
    data = json.dumps(answered_notebook(course, CHAPTER, answers)).encode()
    graded = grade_submission(data, kit_without_points, warm_pool, Terms("ada", b"secret", 10, Limits()))
    double = graded.result.exercises["double"]
    assert (double.points, double.maximum, double.status) == (points, 2.0, "graded")
    assert graded.scores["double-test"] == 0.0
