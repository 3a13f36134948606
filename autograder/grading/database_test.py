"""Gradebooks by URL: what is refused, and what happens when the database goes away while it is written."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from autograder.errors import CourseError
from autograder.grading import database, gradebook
from autograder.grading.database import database_url, opened, refuse_foreign, shown
from autograder.grading.engine import Tally, grade_chapter
from autograder.grading.events import run_log
from autograder.grading.options import GradeOptions
from autograder.grading.pool import KernelPool
from autograder.grading.results import read_results
from autograder.grading.stock import StockCourse
from autograder.testing.private_postgres import PrivatePostgres
from autograder.testing.tiny_course import CHAPTER, RIGHT, hand_in, make_tiny_course

COURSE = Path("/course")
STUDENTS = ("ada", "bea", "cem")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("sqlite:///book.db", "sqlite:////course/book.db?timeout=30"),
        ("sqlite:////elsewhere/book.db?timeout=3", "sqlite:////elsewhere/book.db?timeout=3"),
        ("postgresql://me:pw@host/name", "postgresql+psycopg://me:pw@host/name?connect_timeout=10"),
        ("postgres://host/name?connect_timeout=3", "postgresql+psycopg://host/name?connect_timeout=3"),
    ],
)
def test_a_url_becomes_what_sqlalchemy_takes(given: str, expected: str) -> None:
    assert database_url(given, COURSE) == expected


@pytest.mark.parametrize("given", ["gradebook.db", "", "mysql://me:secret@host/name", "sqlite://", "http://x:y:z"])
def test_any_other_url_is_refused_without_its_password(given: str) -> None:
    with pytest.raises(CourseError, match=r"must be like sqlite:///") as caught:
        database_url(given, COURSE)
    assert "secret" not in str(caught.value)


def test_a_password_is_never_shown() -> None:
    assert shown("postgresql+psycopg://me:secret@host/name?password=secret") == "postgresql+psycopg://me:***@host/name"


def test_a_server_that_is_not_there_is_told_in_one_sentence(tmp_path: Path) -> None:
    course = make_tiny_course(tmp_path / "course")
    stock = StockCourse(course, CHAPTER, run_log(CHAPTER), f"postgresql://me:secret@/name?host={tmp_path}")
    with pytest.raises(CourseError, match=r"The gradebook postgresql.* cannot be opened: .*") as caught:
        stock.is_registered()
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def written(path: Path, statements: list[str]) -> bytes:
    """Make a database of these statements; return what its file holds."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path.read_bytes()


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["CREATE TABLE recipes (name TEXT)"], "something else than a gradebook"),
        (
            ["CREATE TABLE submitted_assignment (id TEXT)", "CREATE TABLE course (id TEXT)"]
            + [f"INSERT INTO course VALUES ('{name}')" for name in ("cooking", "default_course")],
            "the gradebook of cooking, not of baking",
        ),
    ],
)
def test_a_foreign_database_is_refused_and_left_as_it_is(statements: list[str], words: str, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    before = written(path, statements)
    with pytest.raises(CourseError, match=words):
        refuse_foreign(f"sqlite:///{path}", "baking")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["CREATE TABLE recipes (name TEXT)"], "something else than a gradebook"),
        (
            [
                "CREATE TABLE submitted_assignment (id TEXT)",
                "CREATE TABLE course (id TEXT)",
                "INSERT INTO course VALUES ('cooking')",
            ],
            "the gradebook of cooking",
        ),
    ],
)
def test_a_run_refuses_a_foreign_database_and_leaves_it_as_it_is(
    statements: list[str], words: str, tmp_path: Path
) -> None:
    course = three_hand_in(make_tiny_course(tmp_path / "course"))
    path = tmp_path / "foreign.db"
    before = written(path, statements)
    with pytest.raises(CourseError, match=words):
        grade_chapter(course, CHAPTER, GradeOptions(database=f"sqlite:///{path}"))
    assert path.read_bytes() == before


def test_a_folder_that_does_not_exist_is_told_in_a_sentence(tmp_path: Path) -> None:
    course = three_hand_in(make_tiny_course(tmp_path / "course"))
    url = f"sqlite:///{tmp_path}/nowhere/book.db"
    with pytest.raises(CourseError, match=r"^The gradebook \S+ cannot be opened: unable to open[^\n]*$"):
        grade_chapter(course, CHAPTER, GradeOptions(database=url))


@pytest.mark.parametrize("lock", ["EXCLUSIVE", "IMMEDIATE"])
def test_a_database_that_stays_locked_at_the_first_run_is_told_in_a_sentence(
    lock: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0)
    course = three_hand_in(make_tiny_course(tmp_path / "course"))
    stock = StockCourse(course, CHAPTER, run_log(CHAPTER))
    with stock.gradebook():
        pass
    with closing(sqlite3.connect(course / "gradebook.db")) as other:
        other.execute(f"BEGIN {lock}")
        with pytest.raises(CourseError, match=r"^The gradebook \S+ cannot be [^\n]*database is locked[^\n]*$"):
            grade_chapter(course, CHAPTER)


def test_every_connection_to_a_file_waits_while_another_program_writes(tmp_path: Path) -> None:
    stock = StockCourse(make_tiny_course(tmp_path / "course"), CHAPTER, run_log(CHAPTER))
    with stock.gradebook() as book, book.engine.connect() as connection:
        waits = connection.exec_driver_sql("PRAGMA busy_timeout").scalar()
    assert waits == 1000 * database.BUSY_SECONDS
    assert str(tmp_path / "course" / "gradebook.db") in stock.folder.db_url


def three_hand_in(course: Path) -> Path:
    """Let three students hand in."""
    for student in STUDENTS:
        hand_in(course, student, RIGHT if student != "bea" else {})
    return course


def stands(course: Path, database: str | None) -> dict:
    """Return what stock nbgrader and the results say of the class."""
    stock = StockCourse(course, CHAPTER, run_log(CHAPTER), database)
    results = read_results(course, CHAPTER).students
    return {name: (results[name].status, results[name].points, stock.scores(name)) for name in STUDENTS}


@pytest.mark.slow
def test_a_database_that_goes_away_ends_the_run_in_a_sentence_and_the_next_one_completes_it(
    tmp_path: Path, postgres: PrivatePostgres, warm_pool: KernelPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradebook, "SECONDS_BETWEEN_TRIES", 0.01)
    undisturbed = three_hand_in(make_tiny_course(tmp_path / "undisturbed"))
    grade_chapter(undisturbed, CHAPTER, GradeOptions(seed=1), pool=warm_pool)
    course = three_hand_in(make_tiny_course(tmp_path / "course"))
    url = postgres.url(postgres.new_database())

    def pull_the_plug(tally: Tally) -> None:
        if tally.done == 1:
            postgres.stop()

    options = GradeOptions(seed=1, workers=1, database=url)
    try:
        with pytest.raises(CourseError, match=r"The gradebook cannot be used: .*; run it again\.") as caught:
            grade_chapter(course, CHAPTER, options, pull_the_plug, warm_pool)
    finally:
        postgres.start()
    assert "\n" not in str(caught.value)
    assert len(read_results(course, CHAPTER).students) == 1
    grade_chapter(course, CHAPTER, options, pool=warm_pool)
    assert stands(course, url) == stands(undisturbed, None)
    assert not (course / "gradebook.db").exists()
    assert sorted(path.parent.parent.name for path in course.glob("feedback/*/*/*.html")) == list(STUDENTS)


@pytest.mark.slow
def test_a_database_that_goes_away_while_pages_are_written_is_told_and_no_page_is_taken_for_new(
    tmp_path: Path, postgres: PrivatePostgres, warm_pool: KernelPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradebook, "SECONDS_BETWEEN_TRIES", 0.01)
    course = three_hand_in(make_tiny_course(tmp_path / "course"))
    options = GradeOptions(seed=1, database=postgres.url(postgres.new_database()))
    real = StockCourse.feedback

    def planted(stock: StockCourse, students: list[str]) -> list[str]:
        postgres.stop()
        return real(stock, students)

    with monkeypatch.context() as patch, pytest.raises(CourseError, match="cannot be used"):
        patch.setattr(StockCourse, "feedback", planted)
        try:
            grade_chapter(course, CHAPTER, options, pool=warm_pool)
        finally:
            postgres.start()
    result = grade_chapter(course, CHAPTER, options, pool=warm_pool)
    assert all(student.warnings == [] for student in result.students.values())
    assert len(list(course.glob("feedback/*/*/*.html"))) == len(STUDENTS)


def test_a_server_that_comes_back_soon_is_waited_for(
    tmp_path: Path, postgres: PrivatePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = make_tiny_course(tmp_path / "course")
    stock = StockCourse(course, CHAPTER, run_log(CHAPTER), postgres.url(postgres.new_database()))
    waits = []

    def come_back(seconds: float) -> None:
        waits.append(seconds)
        monkeypatch.setattr(time, "sleep", sleep)
        postgres.start()

    sleep = time.sleep
    with stock.at_work(), opened(stock.open_gradebook) as book:
        book.update_or_create_assignment(CHAPTER)
        book.update_or_create_notebook(CHAPTER, CHAPTER)
        writer = gradebook.GradebookWriter(book, CHAPTER, stock.config, tmp_path / "changes.jsonl", stock.log)
        assert writer.read("nobody").scores == {}
        postgres.stop()
        monkeypatch.setattr(time, "sleep", come_back)
        assert writer.read("nobody").scores == {}
    assert waits == [gradebook.SECONDS_BETWEEN_TRIES]
