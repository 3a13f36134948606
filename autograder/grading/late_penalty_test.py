"""What being late costs is up to date after a plain `course grade`, and every page tells the same points."""

import csv
import json
import logging
from datetime import datetime
from pathlib import Path

import pytest

from autograder.build import answered_notebook
from autograder.cli import main
from autograder.grading import engine
from autograder.grading.engine import grade_chapter
from autograder.grading.pool import KernelPool
from autograder.grading.results import StudentResult, read_results
from autograder.grading.stock import StockCourse
from autograder.testing.tiny_course import CHAPTER, RIGHT, make_tiny_course

pytestmark = pytest.mark.slow
DUE = datetime(2026, 2, 1, 22, 0)
HALF_A_DAY_LATE = "2026-02-02 10:00:00 UTC"
POINTS, WRITTEN_POINTS = 6.0, 2.0
SHARE = 0.1  # of one day begun


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Return a course with one submission; whether it is late depends on the due date."""
    course = make_tiny_course(tmp_path / "course")
    folder = course / "submitted" / "ada" / CHAPTER
    folder.mkdir(parents=True)
    answers = RIGHT | {"why-written": "Two divides it."}
    (folder / f"{CHAPTER}.ipynb").write_text(json.dumps(answered_notebook(course, CHAPTER, answers)), encoding="utf-8")
    (folder / "timestamp.txt").write_text(HALF_A_DAY_LATE)
    return course


def stock(course: Path) -> StockCourse:
    """Return nbgrader on the course."""
    return StockCourse(course, CHAPTER, logging.getLogger("test"))


def graded_again(course: Path, monkeypatch: pytest.MonkeyPatch) -> StudentResult:
    """Grade once more, where nothing is to be run."""
    with monkeypatch.context() as patch:
        patch.setattr(engine, "grade_submission", lambda *_: pytest.fail("a submission was graded anew"))
        return grade_chapter(course, CHAPTER).students["ada"]


def exported(course: Path) -> dict[str, str]:
    """Return the student's row of the plain export."""
    command(course, "export", CHAPTER, "--to", "csv")
    with (course / "results" / f"{CHAPTER}.csv").open(encoding="utf-8-sig", newline="") as file:
        return next(row for row in csv.DictReader(file) if row["id"] == "ada")


def command(course: Path, *arguments: str) -> None:
    """Run a command of the course that must succeed."""
    with pytest.raises(SystemExit) as end:
        main((*arguments, "--course", str(course)))
    assert not end.value.code, arguments


def assert_every_page_says(course: Path, points: float, penalty: float, capsys: pytest.CaptureFixture[str]) -> None:
    """Look at explanation, report, feedback page and export."""
    row = exported(course)
    assert (float(row["points"]), float(row["late_penalty"])) == (pytest.approx(points), pytest.approx(penalty))
    capsys.readouterr()
    command(course, "why", "ada", "1")
    assert f"{points:g} of 8 points" in capsys.readouterr().out
    command(course, "report", "1")
    report = (course / "results" / f"{CHAPTER}.report.html").read_text(encoding="utf-8")
    assert f'<th scope="row">ada</th><td class="number">{points:g} of 8</td>' in report
    page = (course / "feedback" / "ada" / CHAPTER / f"{CHAPTER}.html").read_text(encoding="utf-8")
    assert f"<strong>{points:g} of 8 points</strong>" in page
    if penalty:
        assert f"{penalty:g} of {points + penalty:g} points are taken off for handing in late" in report
        assert f"after {penalty:g} off for handing in late" in page


def test_a_due_date_set_after_grading_counts_at_the_next_plain_run(
    course: Path, warm_pool: KernelPool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert grade_chapter(course, CHAPTER, pool=warm_pool).students["ada"].penalty == 0
    stock(course).set_due_date(DUE)
    result = graded_again(course, monkeypatch)
    assert result.penalty == pytest.approx(SHARE * POINTS)
    assert "Handed in 720 minutes late." in result.warnings
    assert_every_page_says(course, (1 - SHARE) * POINTS, SHARE * POINTS, capsys)


def test_a_due_date_moved_to_later_takes_the_penalty_back(
    course: Path, warm_pool: KernelPool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stock(course).set_due_date(DUE)
    assert grade_chapter(course, CHAPTER, pool=warm_pool).students["ada"].penalty == pytest.approx(SHARE * POINTS)
    stock(course).set_due_date(DUE.replace(year=DUE.year + 1))
    result = graded_again(course, monkeypatch)
    assert (result.penalty, result.warnings) == (0, [])
    assert_every_page_says(course, POINTS, 0, capsys)


def test_another_policy_counts_at_the_next_plain_run(
    course: Path, warm_pool: KernelPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock(course).set_due_date(DUE)
    grade_chapter(course, CHAPTER, pool=warm_pool)
    config = course / "nbgrader_config.py"
    config.write_text(f"{config.read_text()}c.LatePolicy.percent_per_day = 50\n")
    result = grade_chapter(course, CHAPTER, pool=warm_pool).students["ada"]
    assert (result.points, result.penalty) == (POINTS, pytest.approx(POINTS / 2))


def test_points_by_hand_show_at_once_on_every_page_and_count_for_the_penalty_at_the_next_run(
    course: Path, warm_pool: KernelPool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stock(course).set_due_date(DUE)
    grade_chapter(course, CHAPTER, pool=warm_pool)
    with stock(course).gradebook() as book:
        row = book.find_grade("why-written", CHAPTER, CHAPTER, "ada")
        row.manual_score, row.needs_manual_grade = WRITTEN_POINTS, False
        book.db.commit()
    command(course, "feedback", "1")
    row = exported(course)
    assert (row["status"], row["why"]) == ("graded", str(WRITTEN_POINTS))
    everything, before = POINTS + WRITTEN_POINTS, SHARE * POINTS
    assert_every_page_says(course, everything - before, before, capsys)
    assert read_results(course, CHAPTER).students["ada"].points == POINTS  # looking at pages writes no results
    assert graded_again(course, monkeypatch).penalty == pytest.approx(SHARE * everything)
    assert_every_page_says(course, (1 - SHARE) * everything, SHARE * everything, capsys)


def test_a_penalty_that_is_right_is_not_written_again(
    course: Path, warm_pool: KernelPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock(course).set_due_date(DUE)
    grade_chapter(course, CHAPTER, pool=warm_pool)
    before = (course / "gradebook.db").read_bytes()
    graded_again(course, monkeypatch)
    assert (course / "gradebook.db").read_bytes() == before
