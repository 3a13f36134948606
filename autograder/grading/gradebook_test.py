"""The gradebook: written at once or not at all, a person's work kept, every change noted."""

import contextlib
import json
import logging
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import Connection, create_engine

from autograder.build import build_all
from autograder.errors import CourseError
from autograder.grading import database
from autograder.grading import gradebook as writing_module
from autograder.grading.database import opened
from autograder.grading.files import source_text, write_if_new
from autograder.grading.gradebook import GradebookWriter
from autograder.grading.stock import StockCourse
from autograder.testing.private_postgres import PrivatePostgres
from autograder.testing.tiny_course import CHAPTER, make_tiny_course

FULL = {"double-test": 1.0, "double-hidden-test": 2.0, "triple-test": 1.0, "triple-hidden-test": 2.0}
DUE = datetime(2026, 2, 1, 22, 0)
SHARE = 0.1  # what the late policy of the course takes off for one day begun
CELLS = len(FULL) + 1
MOST_THAT_FIT = 200


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a course whose instructor's notebook is made."""
    course = make_tiny_course(tmp_path_factory.mktemp("book") / "course")
    build_all(course)
    stock = StockCourse(course, CHAPTER, logging.getLogger("test"))
    write_if_new(stock.source, source_text(course, CHAPTER, stock.source))
    return course


def register(course: Path, database: str | None = None) -> None:
    """Let a gradebook know the chapter and when it is due."""
    stock = StockCourse(course, CHAPTER, logging.getLogger("test"), database)
    stock.register()
    stock.set_due_date(DUE)


@pytest.fixture(scope="module")
def registered(course: Path) -> Path:
    """Return a SQLite gradebook that knows the chapter."""
    register(course)
    return course / "gradebook.db"


@pytest.fixture(scope="module")
def registered_in_postgres(course: Path, postgres: PrivatePostgres) -> str:
    """Return the name of a database in PostgreSQL that knows the chapter."""
    name = postgres.new_database()
    register(course, postgres.url(name))
    return name


def copied(registered: Path, folder: Path) -> str:
    """Copy a SQLite gradebook into a folder; return its URL there."""
    (folder / "gradebook.db").write_bytes(registered.read_bytes())
    return "sqlite:///gradebook.db"


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def stock(request: pytest.FixtureRequest, course: Path, tmp_path: Path) -> StockCourse:
    """Return nbgrader's view of a course with a gradebook of its own."""
    if request.param == "SQLite":
        url = copied(request.getfixturevalue("registered"), tmp_path)
    else:
        server: PrivatePostgres = request.getfixturevalue("postgres")
        url = server.url(server.new_database(request.getfixturevalue("registered_in_postgres")))
    (tmp_path / "nbgrader_config.py").write_bytes((course / "nbgrader_config.py").read_bytes())
    return StockCourse(tmp_path, CHAPTER, logging.getLogger("test"), url)


@contextlib.contextmanager
def held(stock: StockCourse) -> Iterator[Connection]:
    """Hold the gradebook as a program does that writes for long."""
    engine = create_engine(stock.folder.db_url)
    sqlite = engine.dialect.name == "sqlite"
    with engine.connect() as other:
        other.exec_driver_sql("BEGIN IMMEDIATE" if sqlite else "LOCK TABLE grade IN ACCESS EXCLUSIVE MODE")
        yield other
    engine.dispose()


@pytest.fixture
def book(stock: StockCourse, tmp_path: Path) -> Iterator[GradebookWriter]:
    """Return the writer."""
    with stock.at_work(), opened(stock.open_gradebook) as gradebook:
        yield GradebookWriter(gradebook, CHAPTER, stock.config, tmp_path / "changes.jsonl", stock.log)


def changes(folder: Path) -> list[dict]:
    """Read the lines about changed grades."""
    path = folder / "changes.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def by_hand(stock: StockCourse, student: str) -> None:
    """Grade and comment as a person does in formgrader."""
    with stock.gradebook() as other:
        grade = other.find_grade("why-written", CHAPTER, CHAPTER, student)
        grade.manual_score, grade.extra_credit, grade.needs_manual_grade = 1.5, 0.25, False
        other.find_comment("why-written", CHAPTER, CHAPTER, student).manual_comment = "Well put."
        other.db.commit()


def test_what_is_recorded_is_what_stock_nbgrader_reads(book: GradebookWriter, stock: StockCourse) -> None:
    written = book.record("ada", FULL | {"why-written": None}, ["double"])
    assert written.scores == stock.scores("ada")
    assert sum(score.points for score in written.scores.values()) == sum(FULL.values())
    assert [name for name, score in written.scores.items() if score.needs_person] == ["why-written"]
    assert written.comments["double"] == "No response."


def test_a_persons_points_and_comments_survive(book: GradebookWriter, stock: StockCourse) -> None:
    book.record("ada", FULL | {"why-written": None}, [])
    by_hand(stock, "ada")
    assert book.read("ada").scores["why-written"].points == 1.75
    written = book.record("ada", dict.fromkeys(FULL, 0.0) | {"why-written": None}, ["why-written"])
    assert written.scores["why-written"].points == 1.75
    assert written.comments["why-written"] == "Well put."


def test_a_failed_submission_withdraws_automatic_points_alone(book: GradebookWriter, stock: StockCourse) -> None:
    book.record("ada", FULL | {"why-written": None}, [])
    by_hand(stock, "ada")
    written = book.record("ada", None, [])
    assert {name: score.points for name, score in written.scores.items() if score.points} == {"why-written": 1.75}
    assert all(score is None for score in book.automatic("ada").values())


def test_every_changed_grade_leaves_a_line_and_no_other(book: GradebookWriter, tmp_path: Path) -> None:
    book.record("ada", FULL | {"why-written": 0.0}, [])
    assert len(changes(tmp_path)) == CELLS
    book.record("ada", FULL | {"why-written": 0.0}, [])
    assert len(changes(tmp_path)) == CELLS
    book.record("ada", FULL | {"why-written": 0.0, "double-test": 0.0}, [])
    (line,) = changes(tmp_path)[CELLS:]
    assert (line["student"], line["cell"]) == ("ada", "double-test")
    assert (line["before"]["auto_score"], line["after"]["auto_score"]) == (1.0, 0.0)


def test_a_changed_late_penalty_leaves_a_line_too(book: GradebookWriter, tmp_path: Path) -> None:
    book.record("ada", FULL, [], DUE - timedelta(minutes=5))
    before = len(changes(tmp_path))
    book.record("ada", FULL, [], DUE + timedelta(days=1))
    (line,) = changes(tmp_path)[before:]
    assert (line["cell"], line["before"], line["after"]) == (
        "late penalty",
        {"late penalty": 0.0},
        {"late penalty": pytest.approx(SHARE * sum(FULL.values()))},
    )


def test_lateness_follows_from_the_due_date(book: GradebookWriter) -> None:
    assert book.record("ada", FULL, [], DUE + timedelta(minutes=5)).late == 300
    assert book.record("bea", FULL, [], DUE - timedelta(minutes=5)).late == 0
    assert book.record("eve", FULL, [], None).late == 0


def test_an_unknown_student_has_nothing(book: GradebookWriter) -> None:
    assert book.read("nobody").scores == {}


def test_an_error_on_the_way_leaves_nothing_half_written(
    book: GradebookWriter, stock: StockCourse, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.record("ada", FULL | {"why-written": 0.0}, [])

    def planted(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(book, "_write_comments", planted)
    for student in ("ada", "new"):
        with pytest.raises(RuntimeError, match="planted"):
            book.record(student, dict.fromkeys(FULL, 0.0), [])
    assert sum(score.points for score in book.read("ada").scores.values()) == sum(FULL.values())
    assert stock.scores("new") == {}


def test_a_locked_gradebook_is_waited_for(book: GradebookWriter, stock: StockCourse) -> None:
    with held(stock) as other:
        timer = threading.Timer(0.5, other.commit)
        timer.start()
        assert book.record("ada", FULL, []).scores["double-test"].points == 1.0
        timer.join()


def test_a_gradebook_that_stays_locked_is_told_in_a_sentence(
    stock: StockCourse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)  # on PostgreSQL; SQLite has it in the URL
    stock.folder.db_url = stock.folder.db_url.replace("timeout=30", "timeout=0.01")
    monkeypatch.setattr(writing_module, "SECONDS_BETWEEN_TRIES", 0.01)
    with stock.at_work(), opened(stock.open_gradebook) as gradebook:
        book = GradebookWriter(gradebook, CHAPTER, stock.config, tmp_path / "changes.jsonl", stock.log)
        with held(stock), pytest.raises(CourseError, match=r"cannot be used: (database is locked|canceling statement)"):
            book.record("ada", FULL, [])
        assert book.record("ada", FULL, []).scores["double-test"].points == 1.0


def test_a_file_that_is_no_gradebook_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "gradebook.db").write_bytes(b"this is no database, but long enough to be taken for one" * 30)
    with (
        pytest.raises(CourseError, match="cannot be opened"),
        opened(lambda: Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}")),
    ):
        pass


def test_a_gradebook_without_room_is_told_and_holds_whole_submissions(
    course: Path, registered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing_module, "SECONDS_BETWEEN_TRIES", 0.01)
    (tmp_path / "nbgrader_config.py").write_bytes((course / "nbgrader_config.py").read_bytes())
    stock = StockCourse(tmp_path, CHAPTER, logging.getLogger("test"), copied(registered, tmp_path))
    with stock.at_work(), opened(stock.open_gradebook) as gradebook:
        book = GradebookWriter(gradebook, CHAPTER, stock.config, tmp_path / "changes.jsonl", stock.log)
        link = gradebook.db.connection().exec_driver_sql
        pages = link("PRAGMA page_count").scalar()
        link(f"PRAGMA max_page_count = {pages + 2}")
        recorded: list[str] = []
        with pytest.raises(CourseError, match="database or disk is full; make room and run it again"):
            for number in range(MOST_THAT_FIT):
                book.record(f"student {number}", FULL, [])
                recorded.append(f"student {number}")
        assert recorded
        assert all(len(stock.scores(student)) == CELLS for student in recorded)
        assert stock.scores(f"student {len(recorded)}") == {}
