"""Grading a class: every submission gets its result, whatever the others do."""

import copy
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from nbformat import NotebookNode

from autograder.build import build_all
from autograder.errors import CourseError
from autograder.grading import engine
from autograder.grading.cells import grade_id
from autograder.grading.engine import ClassRun, grade_chapter, planned
from autograder.grading.events import run_log
from autograder.grading.limits import Limits
from autograder.grading.options import GradeOptions
from autograder.grading.pool import KernelPool
from autograder.grading.results import ClassResult, read_results, results_path
from autograder.grading.stock import StockCourse
from autograder.testing.tiny_course import CHAPTER, RIGHT, hand_in, make_tiny_course, points

pytestmark = pytest.mark.slow
CELL_TIMEOUT = 8
SQUARED = "def double(x):\n    return x * x"
LOOP = "def double(x):\n    while True:\n        pass"
DEADLY = "import os\n\n\ndef double(x):\n    os._exit(1)"
WRITTEN = {"why-written": "Because I say so."}


def double_a_test(notebook: NotebookNode) -> None:
    """Paste a copy of the first test behind it."""
    place = next(i for i, cell in enumerate(notebook.cells) if grade_id(cell) == "double-test")
    twin = copy.deepcopy(notebook.cells[place])
    twin["id"] = "twin"
    notebook.cells.insert(place + 1, twin)


def lose_an_answer(notebook: NotebookNode) -> None:
    """Delete an answer cell."""
    notebook.cells = [cell for cell in notebook.cells if grade_id(cell) != "triple"]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a course with one submission of every kind."""
    course = make_tiny_course(tmp_path_factory.mktemp("engine") / "course", CELL_TIMEOUT)
    build_all(course)
    hand_in(course, "a right", RIGHT)
    hand_in(course, "b squared", RIGHT | {"double": SQUARED} | WRITTEN)
    hand_in(course, "c untouched", {})
    hand_in(course, "d doubled cell", RIGHT, double_a_test)
    hand_in(course, "e lost answer", RIGHT, lose_an_answer)
    hand_in(course, "f loop", RIGHT | {"double": LOOP})
    hand_in(course, "g dies", RIGHT | {"double": DEADLY})
    hand_in(course, "h no notebook", RIGHT).write_bytes(b"\xff\xfe no JSON")
    hand_in(course, "i wrong name", RIGHT).rename(course / "submitted" / "i wrong name" / CHAPTER / "mine.ipynb")
    hand_in(course, "j [odd] + name", RIGHT)
    hand_in(course, "k nothing", RIGHT).unlink()
    return course


@pytest.fixture(scope="module")
def graded(course: Path, warm_pool: KernelPool) -> ClassResult:
    """Return the class's results."""
    return grade_chapter(course, CHAPTER, pool=warm_pool)


@pytest.mark.parametrize(
    ("student", "status", "expected"),
    [
        ("a right", "graded", {"double": 3, "triple": 3, "why": 0}),
        ("b squared", "needs_manual", {"double": 0, "triple": 3, "why": 0}),
        ("c untouched", "graded", {"double": 0, "triple": 0, "why": 0}),
        ("d doubled cell", "graded", {"double": 3, "triple": 3, "why": 0}),
        ("e lost answer", "graded", {"double": 3, "triple": 0, "why": 0}),
        ("f loop", "graded", {"double": 0, "triple": 3, "why": 0}),
        ("g dies", "partly", {"double": 0, "triple": 0, "why": 0}),
        ("h no notebook", "failed", {"double": 0, "triple": 0, "why": 0}),
        ("i wrong name", "graded", {"double": 3, "triple": 3, "why": 0}),
        ("j [odd] + name", "graded", {"double": 3, "triple": 3, "why": 0}),
        ("k nothing", "failed", {"double": 0, "triple": 0, "why": 0}),
    ],
)
def test_every_submission_gets_its_own_result(
    student: str, status: str, expected: dict[str, float], graded: ClassResult
) -> None:
    assert graded.students[student].status == status
    assert points(graded, student) == expected


@pytest.mark.parametrize(
    ("student", "words"),
    [
        ("h no notebook", "the file is not JSON"),
        ("k nothing", "there is no notebook in the folder"),
    ],
)
def test_a_failure_has_its_reason_as_the_first_warning(student: str, words: str, graded: ClassResult) -> None:
    assert words in graded.students[student].warnings[0]


def test_verdicts_reach_the_results(graded: ClassResult) -> None:
    exercise = graded.students["b squared"].exercises["double"]
    assert (exercise.misconception, exercise.message, exercise.seed) == ("squared", "Expected 2 times 4, got 16.", 7)
    message = graded.students["e lost answer"].exercises["triple"].message
    assert message == "`triple` is not defined in this notebook: its cell was deleted or raised an error."
    assert f"{CELL_TIMEOUT} seconds" in str(graded.students["f loop"].exercises["double"].message)


def test_the_points_are_those_of_the_gradebook(course: Path, graded: ClassResult) -> None:
    stock = StockCourse(course, CHAPTER, run_log(CHAPTER))
    for student, result in graded.students.items():
        assert sum(score.points for score in stock.scores(student).values()) == result.points


def test_a_repair_is_told(graded: ClassResult) -> None:
    assert "more than once" in graded.students["d doubled cell"].repairs[0]
    assert "mine.ipynb" in graded.students["i wrong name"].repairs[0]
    assert graded.students["a right"].repairs == []


def test_everybody_graded_has_a_feedback_page_and_nobody_else(course: Path, graded: ClassResult) -> None:
    pages = {path.parent.parent.name for path in course.glob(f"feedback/*/{CHAPTER}/{CHAPTER}.html")}
    assert pages == {name for name, result in graded.students.items() if result.status != "failed"}


def test_the_file_holds_what_was_returned(course: Path, graded: ClassResult) -> None:
    assert read_results(course, CHAPTER) == graded
    assert json.loads(results_path(course, CHAPTER).read_text())["chapter"] == CHAPTER


def test_grading_writes_nothing_into_chapters(course: Path, graded: ClassResult) -> None:
    assert [path.name for path in (course / "chapters" / CHAPTER).iterdir()] == [f"{CHAPTER}.ipynb"]


def test_what_has_not_changed_is_not_graded_again(course: Path, graded: ClassResult) -> None:
    due = [name for name, again in planned(course, CHAPTER, GradeOptions()) if again]
    assert due == [name for name, result in graded.students.items() if result.status == "failed"]
    assert all(again for _, again in planned(course, CHAPTER, GradeOptions(force=True)))


def test_a_plan_makes_nothing_and_asks_the_gradebook_that_is_named(tmp_path: Path, grade: Callable) -> None:
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    hand_in(course, "ada", RIGHT)
    before = sorted(course.rglob("*"))
    assert planned(course, CHAPTER, GradeOptions()) == [("ada", True)]
    assert [path for path in sorted(course.rglob("*")) if path not in before] == []
    grade(course, CHAPTER)
    assert planned(course, CHAPTER, GradeOptions()) == [("ada", False)]
    assert planned(course, CHAPTER, GradeOptions(database="sqlite:///other.db")) == [("ada", True)]
    assert not (course / "other.db").exists()


def test_a_resubmission_that_cannot_be_graded_loses_the_old_score(tmp_path: Path, grade: Callable) -> None:
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    hand_in(course, "ada", RIGHT)
    assert points(grade(course, CHAPTER), "ada")["double"] > 0
    hand_in(course, "ada", RIGHT).write_bytes(b"no notebook")
    again = grade(course, CHAPTER)
    assert again.students["ada"].status == "failed"
    assert set(points(again, "ada").values()) == {0}
    assert not (course / "feedback" / "ada" / CHAPTER).exists()
    lines = [json.loads(line) for line in (course / "results" / f"{CHAPTER}.changes.jsonl").read_text().splitlines()]
    withdrawn = {line["cell"]: line for line in lines[-5:]}["double-test"]
    assert (withdrawn["before"]["auto_score"], withdrawn["after"]["auto_score"]) == (1.0, None)


def test_one_student_is_graded_and_the_others_results_stay(tmp_path: Path, grade: Callable) -> None:
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    hand_in(course, "ada", RIGHT)
    hand_in(course, "bea", {})
    grade(course, CHAPTER)
    hand_in(course, "bea", RIGHT)
    result = grade(course, CHAPTER, GradeOptions(student="bea"))
    assert list(result.students) == ["bea"]
    assert list(read_results(course, CHAPTER).students) == ["ada", "bea"]
    assert points(result, "bea")["double"] > 0


@pytest.mark.parametrize(
    ("prepare", "chapter", "options", "words"),
    [
        (lambda course: None, CHAPTER, GradeOptions(), "There is no submission"),
        (lambda course: None, "02_none", GradeOptions(), "There is no chapter '02_none'"),
        (lambda course: hand_in(course, "ada", {}), CHAPTER, GradeOptions(student="adda"), "did you mean ada"),
        (lambda course: (course / "nbgrader_config.py").unlink(), CHAPTER, GradeOptions(), "no nbgrader_config.py"),
        (lambda course: (course / "nbgrader_config.py").write_text("c ="), CHAPTER, GradeOptions(), "cannot be read"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    prepare: Callable[[Path], None], chapter: str, options: GradeOptions, words: str, tmp_path: Path
) -> None:
    course = make_tiny_course(tmp_path / "course")
    prepare(course)
    with pytest.raises(CourseError, match=words):
        grade_chapter(course, chapter, options)


def test_a_notebook_that_may_take_long_gets_the_processor_as_long(course: Path) -> None:
    long = 10 * Limits().cpu_seconds
    limits = ClassRun(course, CHAPTER, GradeOptions(notebook_timeout=long + 0.5)).limits
    assert (limits.seconds, limits.cpu_seconds) == (long + 0.5, long + 1)
    assert ClassRun(course, CHAPTER, GradeOptions(notebook_timeout=10)).limits.cpu_seconds == Limits().cpu_seconds


def test_an_unforeseen_error_is_one_submissions_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grade: Callable
) -> None:
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    hand_in(course, "ada", RIGHT)
    hand_in(course, "bea", RIGHT)
    real = engine.grade_submission

    def planted(data: bytes, kit, pool, terms, files):
        if terms.student == "ada":
            raise RuntimeError("planted")
        return real(data, kit, pool, terms, files)

    monkeypatch.setattr(engine, "grade_submission", planted)
    result = grade(course, CHAPTER)
    assert "planted" in result.students["ada"].warnings[0]
    assert result.students["bea"].status == "graded"


def test_a_persons_points_and_comment_survive_and_reach_the_results(tmp_path: Path, grade: Callable) -> None:
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    hand_in(course, "ada", RIGHT | WRITTEN)
    assert grade(course, CHAPTER).students["ada"].status == "needs_manual"
    with StockCourse(course, CHAPTER, run_log(CHAPTER)).gradebook() as book:
        row = book.find_grade("why-written", CHAPTER, CHAPTER, "ada")
        row.manual_score, row.needs_manual_grade = 1.5, False
        book.find_comment("why-written", CHAPTER, CHAPTER, "ada").manual_comment = "Nearly, dear Ada."
        book.db.commit()
    unchanged = grade(course, CHAPTER).students["ada"]
    assert (unchanged.status, unchanged.exercises["why"].points) == ("graded", 1.5)
    assert unchanged.exercises["why"].message is None
    page = course / "feedback" / "ada" / CHAPTER / f"{CHAPTER}.html"
    assert "Nearly, dear Ada." in page.read_text(encoding="utf-8")
    hand_in(course, "ada", RIGHT | WRITTEN | {"double": SQUARED})
    again = grade(course, CHAPTER).students["ada"]
    assert (again.exercises["double"].points, again.exercises["why"].points) == (0, 1.5)
    assert again.status == "graded"  # the answer that a person saw is the same
    hand_in(course, "ada", RIGHT | {"why-written": "Because I say so, and more."})
    new = grade(course, CHAPTER).students["ada"]
    assert (new.status, new.exercises["why"].points) == ("needs_manual", 1.5)


def test_nothing_runs_when_nothing_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grade: Callable
) -> None:
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    hand_in(course, "ada", RIGHT)
    first = grade(course, CHAPTER)

    def planted(*_: object, **__: object) -> None:
        raise AssertionError("nothing is to be graded")

    monkeypatch.setattr(engine, "KernelPool", planted)
    monkeypatch.setattr(engine, "grade_submission", planted)
    monkeypatch.setattr(StockCourse, "feedback", planted)
    monkeypatch.setattr(StockCourse, "register", planted)
    assert grade_chapter(course, CHAPTER) == first


def test_the_log_has_a_line_for_each_submission(course: Path, graded: ClassResult) -> None:
    lines = [json.loads(line) for line in (course / "results" / f"{CHAPTER}.log.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines[:2]] == ["start", "sandbox"]
    assert sorted(line["student"] for line in lines if line["event"] == "graded") == sorted(graded.students)


def test_ctrl_c_keeps_what_was_graded(tmp_path: Path, grade: Callable, warm_pool: KernelPool) -> None:
    course = make_tiny_course(tmp_path / "course", CELL_TIMEOUT)
    for student in ("ada", "bea", "cem"):
        hand_in(course, student, RIGHT)

    def interrupt(tally: engine.Tally) -> None:
        if tally.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade(course, CHAPTER, GradeOptions(workers=1), interrupt)
    assert len(read_results(course, CHAPTER).students) == 1
    assert sum(due for _, due in planned(course, CHAPTER, GradeOptions())) == 2
    assert len(grade(course, CHAPTER).students) == 3
