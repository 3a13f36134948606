"""What a second submission changes, and what stays."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from autograder.grading.engine import grade_chapter
from autograder.grading.events import run_log
from autograder.grading.field_reports.report import HandIn
from autograder.grading.pool import KernelPool
from autograder.grading.stock import StockCourse
from autograder.reports.feedback import UNANSWERED
from autograder.testing.tiny_course import CHAPTER, RIGHT, make_tiny_course

pytestmark = pytest.mark.slow
STUDENT, ESSAY = "ada", "why-written"
WORDS = "Since it is a sum of two equal numbers."


@dataclass
class Seen:
    """What a grading gave, the automatic comment on the essay, and all feedback pages."""

    status: str
    comment: str | None
    pages: dict[Path, str]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a course."""
    return make_tiny_course(tmp_path_factory.mktemp("again") / "course")


@pytest.fixture(scope="module")
def twice(course: Path, warm_pool: KernelPool) -> list[Seen]:
    """Grade an untouched essay, then a written one."""
    seen = []
    for answers in (RIGHT, RIGHT | {ESSAY: WORDS}):
        shutil.rmtree(course / "submitted", ignore_errors=True)
        HandIn("essay", answers=answers).put_into(course, STUDENT)
        status = grade_chapter(course, CHAPTER, pool=warm_pool).students[STUDENT].status
        with StockCourse(course, CHAPTER, run_log(CHAPTER)).gradebook() as book:
            comment = book.find_comment(ESSAY, CHAPTER, CHAPTER, STUDENT).comment
        pages = {path: path.read_text(encoding="utf-8") for path in course.glob("feedback/**/*.html")}
        seen.append(Seen(status, comment, pages))
    return seen


def test_an_essay_that_was_written_since_is_no_longer_unanswered(twice: list[Seen]) -> None:
    first, second = twice
    assert (first.status, first.comment) == ("graded", "No response.")
    assert (second.status, second.comment) == ("needs_manual", None)


def test_nobody_is_said_to_have_written_what_the_grader_notes_of_an_untouched_essay(twice: list[Seen]) -> None:
    first, second = (next(iter(seen.pages.values())) for seen in twice)
    assert (UNANSWERED in first, UNANSWERED in second) == (True, False)
    assert "No response" not in first
    assert 'class="comment"' not in first


def test_a_page_stays_in_its_place_when_the_submission_changes(course: Path, twice: list[Seen]) -> None:
    first, second = twice
    place = course / "feedback" / STUDENT / CHAPTER / f"{CHAPTER}.html"
    assert list(first.pages) == list(second.pages) == [place]
    assert (WORDS in first.pages[place], WORDS in second.pages[place]) == (False, True)
