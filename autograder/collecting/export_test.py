"""Points for an LMS, feedback in an archive, and the late policy, on a graded tiny class."""

import csv
import io
import json
import shutil
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from autograder.build import answered_notebook
from autograder.cli import main
from autograder.collecting.export import (
    Key,
    Row,
    as_text,
    canvas_table,
    export,
    gradescope_table,
    harmless,
    moodle_table,
)
from autograder.collecting.give_back import pack_feedback
from autograder.collecting.record import Remembered, remember
from autograder.collecting.roster import Student
from autograder.errors import CourseError
from autograder.grading.engine import grade_chapter
from autograder.grading.events import run_log
from autograder.grading.pool import KernelPool
from autograder.grading.stock import StockCourse
from autograder.testing.tiny_course import CHAPTER, RIGHT, make_tiny_course

pytestmark = pytest.mark.slow
DUE = datetime(2026, 2, 1, 22, 0)
BYTE_ORDER_MARK = "\ufeff"
HALF_A_DAY = timedelta(hours=12)
ROSTER = """\ufeffid,first_name,last_name,email,lms_user_id
ada,Ada,"Smith, Jr.",ada@uni.example,101
=ben,Ben,Ö,b@x,102
eve,Eve,,e@x,103
"""


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Grade a class of two, one of them late; a third handed nothing in."""
    course = make_tiny_course(tmp_path_factory.mktemp("export") / "course")
    (course / "roster.csv").write_text(ROSTER, encoding="utf-8")
    answers = {"ada": RIGHT, "=ben": {"double": RIGHT["double"]}}
    for student, own in answers.items():
        folder = course / "submitted" / student / CHAPTER
        folder.mkdir(parents=True)
        (folder / f"{CHAPTER}.ipynb").write_text(json.dumps(answered_notebook(course, CHAPTER, own)), encoding="utf-8")
    late = (DUE + HALF_A_DAY).replace(tzinfo=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    (course / "submitted" / "ada" / CHAPTER / "timestamp.txt").write_text(late)
    StockCourse(course, CHAPTER, run_log(CHAPTER)).set_due_date(DUE)
    with KernelPool() as pool:
        grade_chapter(course, CHAPTER, pool=pool)
    return course


def table(graded: Path, system: str, tmp_path: Path) -> list[list[str]]:
    """Export and read back."""
    text = export(graded, CHAPTER, system, tmp_path / "out.csv").read_bytes().decode("utf-8")
    assert text.startswith(BYTE_ORDER_MARK) == (system == "csv")  # a spreadsheet needs it, an LMS stumbles over it
    text = text.removeprefix(BYTE_ORDER_MARK)
    return list(csv.reader(io.StringIO(text)))


def test_the_plain_table_has_everybody_with_names_points_penalty_and_exercises(graded: Path, tmp_path: Path) -> None:
    header, *rows = table(graded, "csv", tmp_path)
    by_id = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert set(by_id) == {"ada", "'=ben", "eve"}
    assert by_id["ada"]["last_name"] == "Smith, Jr."
    assert (by_id["ada"]["points"], by_id["ada"]["late_penalty"]) == ("5.4", "0.6")
    assert (by_id["'=ben"]["points"], by_id["'=ben"]["double"], by_id["'=ben"]["triple"]) == ("3.0", "3.0", "0.0")
    assert (by_id["eve"]["points"], by_id["eve"]["status"]) == ("", "missing")


def test_canvas_gets_the_points_possible_and_its_own_ids(graded: Path, tmp_path: Path) -> None:
    rows = table(graded, "canvas", tmp_path)
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", CHAPTER]
    assert rows[1] == ["    Points Possible", "", "", "", "", "8.0"]
    assert ["Smith, Jr., Ada", "101", "ada", "", "", "5.4"] in rows


def test_moodle_and_gradescope_get_their_columns(graded: Path, tmp_path: Path) -> None:
    moodle = table(graded, "moodle", tmp_path)
    assert moodle[0][:2] == ["ID number", "Email address"]
    assert ["ada", "ada@uni.example", "Ada", "Smith, Jr.", "5.4"] in moodle
    scope = table(graded, "gradescope", tmp_path)
    assert scope[0] == ["First Name", "Last Name", "SID", "Email", "Total Score", "Max Points", "Status"]
    assert [row[-1] for row in scope[1:]] == ["Graded", "Graded", "Missing"]


def test_feedback_goes_back_under_the_names_of_the_lms(graded: Path, tmp_path: Path) -> None:
    remember(graded, CHAPTER, {"ada": Remembered("smithada_101_9001_01_tiny")})
    path, number, without = pack_feedback(graded, CHAPTER, tmp_path / "feedback.zip")
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == [f"=ben/{CHAPTER}.html", "smithada_101_9001_01_tiny.html"]
        assert b"Summary" in archive.read("smithada_101_9001_01_tiny.html")
    assert (number, without) == (2, [])


def test_a_late_penalty_is_said_on_the_page(graded: Path) -> None:
    page = (graded / "feedback" / "ada" / CHAPTER / f"{CHAPTER}.html").read_text(encoding="utf-8")
    assert "after 0.6 off for handing in late" in page


def test_what_cannot_be_exported_or_returned_is_one_sentence(graded: Path, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="choose one of csv, canvas, moodle, gradescope"):
        export(graded, CHAPTER, "excel")
    with pytest.raises(CourseError, match="course grade 02_b"):
        export(graded, "02_b", "csv")
    with pytest.raises(CourseError, match="There is no folder"):
        export(graded, CHAPTER, "csv", tmp_path / "none" / "out.csv")
    with pytest.raises(CourseError, match="no feedback page of 02_b"):
        pack_feedback(graded, "02_b")


@pytest.mark.parametrize("make", [canvas_table, moodle_table, gradescope_table])
def test_an_id_that_begins_as_a_formula_reaches_the_lms_as_it_is_and_a_name_does_not(make) -> None:
    student = Student("=id", "=first", "=last", "=mail@x", lms_user_id="-101", username="@login")
    row = next(csv.reader(io.StringIO(as_text(make(CHAPTER, [Row(student, 1.0, 2.0)])[-1:]))))
    assert {"=id", "'=id"} & set(row) == {"=id"}
    assert not {"'=mail@x", "'-101", "'@login"} & set(row)
    assert any(cell.startswith("'=last") for cell in row)
    assert not any(cell.startswith(("=first", "=last")) for cell in row)


def test_points_have_four_digits_at_most() -> None:
    assert as_text([["x", 1 / 3, 2.0]]) == '"x",0.3333,2.0\r\n'
    assert harmless(Key("=x")) == "=x"


def test_the_mark_of_the_lms_for_late_work_stands_in_the_plain_table(graded: Path, tmp_path: Path) -> None:
    remember(graded, CHAPTER, {"=ben": Remembered(late=True)})
    header, *rows = table(graded, "csv", tmp_path)
    assert {row[0]: row[header.index("late_in_lms")] for row in rows} == {"ada": "", "'=ben": "yes", "eve": ""}


def test_a_folder_in_place_of_a_file_is_one_sentence_and_leaves_nothing(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    for arguments in (("export", CHAPTER, "--to", "csv"), ("return", CHAPTER), ("release", CHAPTER)):
        with pytest.raises(SystemExit) as end:
            main((*arguments, "--out", str(tmp_path / "folder"), "--course", str(graded)))
        assert end.value.code == 2
        assert "is a folder; give the name of the file" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@cmd", "\tx", "\rx"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert harmless(text) == f"'{text}"
    assert harmless(-1.5) == -1.5
    assert as_text([["a", text]]).startswith(f'"a","\'{text}'.replace("\"'\r", "\"'\r"))


def test_the_commands_say_where_things_are(graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    course = Path(shutil.copytree(graded, tmp_path / "course"))
    for arguments in (
        ("export", CHAPTER, "--to", "csv"),
        ("return", CHAPTER),
        ("report", CHAPTER),
        ("feedback", CHAPTER, "--student", "ada"),
        ("due", CHAPTER, "2026-12-01 23:59", "--zone", "Europe/Berlin"),
    ):
        with pytest.raises(SystemExit) as end:
            main((*arguments, "--course", str(course)))
        assert not end.value.code, arguments
    said = capsys.readouterr().out
    for words in (f"{CHAPTER}.csv", "2 pages in", f"{CHAPTER}.report.html", "1 feedback page", "22:59 UTC"):
        assert words in said
