"""One class in which everybody but one hands in what somebody has reported: each gets the right result."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from autograder.build import build_all
from autograder.grading.engine import Tally, grade_chapter
from autograder.grading.field_reports.catalogue import REPORTS
from autograder.grading.field_reports.report import BOTH, HandIn, said
from autograder.grading.files import READ_ONLY
from autograder.grading.options import GradeOptions
from autograder.grading.pool import KernelPool
from autograder.grading.results import ClassResult
from autograder.grading.submissions import TIMESTAMP
from autograder.testing.tiny_course import CHAPTER, POINTS, make_tiny_course

pytestmark = pytest.mark.slow
CELL_SECONDS = 6
MEMORY_MB = 256
SEED = 5
HONEST = HandIn("honest")
HAND_INS = {student: one for report in REPORTS for student, one in report.students.items()} | {"honest": HONEST}
LARGEST_GRADED = 2 * 2**20  # a graded notebook: what one cell may print is a megabyte
SPARE_FILES = 30  # open files more at the end of a class than at its beginning: workers, and kernels on their way


@dataclass
class GradedClass:
    """What a class got, and what was seen meanwhile.

    Args:
        course: Its folder.
        result: What it got.
        tallies: Done, failed, and the student, as the run told them.
        open_files: Files that the grader had open, after each submission.
    """

    course: Path
    result: ClassResult = field(default_factory=lambda: ClassResult(CHAPTER))
    tallies: list[tuple[int, int, str]] = field(default_factory=list)
    open_files: list[int] = field(default_factory=list)

    def look(self, tally: Tally) -> None:
        """Note how far the run is, and what it holds open."""
        self.tallies.append((tally.done, tally.failed, tally.student))
        if Path("/proc/self/fd").is_dir():
            self.open_files.append(len(os.listdir("/proc/self/fd")))


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, warm_pool: KernelPool) -> Iterator[GradedClass]:
    """Grade the class once."""
    course = make_tiny_course(tmp_path_factory.mktemp("reports") / "course", CELL_SECONDS)
    build_all(course)
    for student, one in HAND_INS.items():
        one.put_into(course, student)
    found = GradedClass(course)
    found.result = grade_chapter(course, CHAPTER, GradeOptions(memory=MEMORY_MB, seed=SEED), found.look, warm_pool)
    yield found
    shutil.rmtree(course, ignore_errors=True)


def graded_path(graded: GradedClass, student: str) -> Path:
    """Return a student's graded notebook."""
    return graded.course / "autograded" / student / CHAPTER / f"{CHAPTER}.ipynb"


@pytest.mark.parametrize("student", HAND_INS)
def test_a_reported_submission_is_graded_right(student: str, graded: GradedClass) -> None:
    one, result = HAND_INS[student], graded.result.students[student]
    assert (result.points, result.status) == (one.points, one.status), said(result)
    assert result.maximum == sum(POINTS.values())
    if one.words:
        assert one.words in said(result)
    else:
        assert (result.repairs, result.warnings) == ([], [])
    if one.shown:
        assert one.shown in graded_path(graded, student).read_text(encoding="utf-8")


def test_the_honest_student_gets_all_points(graded: GradedClass) -> None:
    result = graded.result.students["honest"]
    assert (result.points, said(result).strip()) == (BOTH, "")


def test_every_failure_is_one_sentence(graded: GradedClass) -> None:
    failures = [result for result in graded.result.students.values() if result.status == "failed"]
    assert len(failures) == sum(one.status == "failed" for one in HAND_INS.values())
    for result in failures:
        assert len(result.warnings) == 1
        assert result.warnings[0].endswith(".")
        assert "Traceback" not in result.warnings[0]


def test_whatever_is_graded_has_its_notebook_and_its_page(graded: GradedClass) -> None:
    for student, result in graded.result.students.items():
        page = graded.course / "feedback" / student / CHAPTER / f"{CHAPTER}.html"
        there = result.status != "failed"
        assert (graded_path(graded, student).is_file(), page.is_file()) == (there, there), student


def test_no_graded_notebook_is_large(graded: GradedClass) -> None:
    sizes = {path.parts[-3]: path.stat().st_size for path in graded.course.glob(f"autograded/*/*/{CHAPTER}.ipynb")}
    assert {student: size for student, size in sizes.items() if size > LARGEST_GRADED} == {}


def test_no_cell_changes_the_time_of_handing_in(graded: GradedClass) -> None:
    student = "68 time rewritten by a cell"
    for step in ("submitted", "autograded"):
        text = (graded.course / step / student / CHAPTER / TIMESTAMP).read_text(encoding="utf-8")
        assert text == "2026-02-01 22:00:00 UTC\n"


def test_a_read_only_submission_can_be_graded_again(graded: GradedClass, warm_pool: KernelPool) -> None:
    student = "74 read only"
    options = GradeOptions(student=student, force=True, memory=MEMORY_MB, seed=SEED)
    again = grade_chapter(graded.course, CHAPTER, options, pool=warm_pool).students[student]
    assert again.points == BOTH
    assert graded_path(graded, student).stat().st_mode & 0o777 == READ_ONLY


def test_progress_counts_every_submission_and_every_failure(graded: GradedClass) -> None:
    failed = sum(one.status == "failed" for one in HAND_INS.values())
    assert [done for done, _, _ in graded.tallies] == list(range(len(HAND_INS) + 1))
    assert graded.tallies[-1][:2] == (len(HAND_INS), failed)
    assert {student for _, _, student in graded.tallies[1:]} == set(HAND_INS)


def test_open_files_do_not_grow_with_the_class(graded: GradedClass) -> None:
    if not graded.open_files:
        pytest.skip("kernel: what a process has open is counted in /proc")
    assert len(graded.open_files) > 60
    middle = len(graded.open_files) // 2
    early, late = graded.open_files[1:middle], graded.open_files[middle:]
    assert max(late) - max(early) <= SPARE_FILES
    assert max(graded.open_files) - graded.open_files[0] <= SPARE_FILES
