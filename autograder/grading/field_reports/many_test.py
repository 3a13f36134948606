"""What must not grow with a class, what must not depend on the number of workers, and a kernel that does not start."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from sqlalchemy import Engine, event
from sqlalchemy.pool import Pool

from autograder.build import answered_notebook
from autograder.collecting.export import export
from autograder.grading import engine
from autograder.grading.engine import grade_chapter
from autograder.grading.field_reports.damaging import TEST, paste_copies
from autograder.grading.field_reports.report import HandIn
from autograder.grading.kit import ChapterKit
from autograder.grading.options import GradeOptions
from autograder.grading.pool import KernelPool
from autograder.grading.results import ClassResult, ExerciseResult, StudentResult
from autograder.grading.running import Terms
from autograder.grading.sandbox import SandboxError
from autograder.grading.step import Graded
from autograder.testing.tiny_course import CHAPTER, POINTS, RIGHT, make_tiny_course

pytestmark = pytest.mark.slow
FEW, MANY = 3, 12
NO_PAGES = GradeOptions(feedback=False)


class NoPool:
    """Stands for a started pool where nothing is run."""

    kind, warning, folder = "planted", "", ""

    def start(self) -> None:
        """Do nothing."""


def course_of(folder: Path, students: int) -> Path:
    """Make a course in which so many students have handed in the same right notebook."""
    course = make_tiny_course(folder / f"course-{students}")
    text = nbformat.writes(answered_notebook(course, CHAPTER, RIGHT))
    for number in range(students):
        path = course / "submitted" / f"student-{number:03}" / CHAPTER / f"{CHAPTER}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return course


def without_running(data: bytes, kit: ChapterKit, *_: Any) -> Graded:
    """Give a submission all its points without running it."""
    scores = {mark.grade_id: mark.points for mark in kit.graded}
    exercises = {mark.exercise: ExerciseResult(0.0, 0.0) for mark in kit.graded}
    return Graded(StudentResult("graded", [], [], exercises), dict(scores), [], data.decode())


@contextmanager
def counted(what: Any, name: str) -> Iterator[list[int]]:
    """Count an event of all databases: how often it came, in the list's one place."""
    count = [0]

    def note(*_: Any) -> None:
        count[0] += 1

    event.listen(what, name, note)
    try:
        yield count
    finally:
        event.remove(what, name, note)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, int]]:
    """Give a small and a large class that were graded without running anything, and the connections it took."""
    folder, found, pool = tmp_path_factory.mktemp("many"), [], NoPool()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "grade_submission", without_running)
        for students in (FEW, MANY):
            course = course_of(folder, students)
            with counted(Pool, "connect") as connections:
                result = grade_chapter(course, CHAPTER, NO_PAGES, pool=pool)  # pyright: ignore[reportArgumentType]
            assert {one.points for one in result.students.values()} == {sum(POINTS.values())}
            found.append((course, connections[0]))
    return found


def test_connections_to_the_gradebook_do_not_grow_with_the_class(classes: list[tuple[Path, int]]) -> None:
    (_, few), (_, many) = classes
    assert many == few > 0


def test_an_export_asks_the_database_as_often_for_many_as_for_few(classes: list[tuple[Path, int]]) -> None:
    questions = []
    for course, _ in classes:
        with counted(Engine, "before_cursor_execute") as count:
            path = export(course, CHAPTER, "csv")
        assert path.read_text(encoding="utf-8").count("student-") == len(list(course.glob("submitted/*")))
        questions.append(count[0])
    assert questions[0] == questions[1] > 0


def test_a_kernel_that_does_not_start_is_tried_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    course, pool = course_of(tmp_path, FEW), NoPool()
    tried: list[str] = []

    def starts_the_second_time(data: bytes, kit: ChapterKit, kernels: Any, terms: Terms, files: Any) -> Graded:
        tried.append(terms.student)
        if tried.count(terms.student) == 1:
            raise SandboxError("The kernel did not start.")
        return without_running(data, kit)

    monkeypatch.setattr(engine, "grade_submission", starts_the_second_time)
    result = grade_chapter(course, CHAPTER, NO_PAGES, pool=pool)  # pyright: ignore[reportArgumentType]
    assert {one.status for one in result.students.values()} == {"graded"}
    assert sorted(tried) == sorted(2 * list(result.students))


def without_seconds(result: ClassResult) -> dict[str, tuple[list[str], dict[str, ExerciseResult]]]:
    """Return what a class got, without how long it took."""
    return {
        student: (one.repairs, {name: replace(exercise, seconds=None) for name, exercise in one.exercises.items()})
        for student, one in result.students.items()
    }


def test_many_at_a_time_give_the_same_as_one_by_one(tmp_path: Path, warm_pool: KernelPool) -> None:
    course = course_of(tmp_path, FEW)
    HandIn("wrong", answers={"double": "def double(x):\n    return x * x"}).put_into(course, "wrong")
    HandIn("copied", damage=paste_copies(TEST)).put_into(course, "copied")
    one_by_one = grade_chapter(course, CHAPTER, replace(NO_PAGES, workers=1, seed=1), pool=warm_pool)
    again = replace(NO_PAGES, workers=3, seed=1, force=True)
    assert without_seconds(grade_chapter(course, CHAPTER, again, pool=warm_pool)) == without_seconds(one_by_one)
