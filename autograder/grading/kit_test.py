"""Which test cells are judged outside, read from the source alone."""

from pathlib import Path

import nbformat
import pytest

from autograder.authoring.chapter_source import read_chapter
from autograder.authoring.instructor import instructor_notebook
from autograder.course_folder import chapter_names, source_path
from autograder.exercise import exercise_names
from autograder.grading.cells import graded_cells
from autograder.grading.kit import CheckCall, check_calls, read_call

ROOT = Path(__file__).parents[2]
IMPORT = "from autograder import check\n\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("check(softmax)", CheckCall("softmax", "softmax", False)),
        (IMPORT + "check(softmax, hidden=True)", CheckCall("softmax", "softmax", True)),
        ("# visible\n### BEGIN HIDDEN TESTS\ncheck(f, 'softmax', True)\n### END", CheckCall("softmax", "f", True)),
        ("check(f, exercise='softmax')", CheckCall("softmax", "f", False)),
    ],
)
def test_a_single_call_of_check_is_read(source: str, expected: CheckCall) -> None:
    assert read_call(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "",
        "assert softmax(x)",
        "check(softmax)\ncheck(softmax, hidden=True)",
        "check(softmax(x))",
        "check(softmax, hidden=maybe)",
        "check(softmax, seed=3)",
        "check(*functions)",
        "import check\ncheck(softmax)",
        "not python (",
    ],
)
def test_anything_else_runs_where_the_students_code_runs(source: str) -> None:
    assert read_call(source) is None


def cell(source: str, **marks: object):
    """Return a graded test cell."""
    marks = {"grade_id": "x-test", "grade": True, "solution": False, "points": 1} | marks
    return nbformat.v4.new_code_cell(source, metadata={"nbgrader": marks})


def test_only_locked_graded_cells_that_call_our_check_are_judged_outside() -> None:
    cells = [
        cell(IMPORT + "check(softmax)", grade_id="a-test"),
        cell("check(softmax, hidden=True)", grade_id="b-test"),
        cell("check(softmax)", grade_id="c", grade=False, solution=True),
        cell("check(softmax)", grade_id="d", solution=True),
    ]
    assert list(check_calls(nbformat.v4.new_notebook(cells=cells))) == ["a-test", "b-test"]


def test_a_check_that_is_not_the_courses_own_runs_where_the_students_code_runs() -> None:
    cells = [cell("from grading import check\ncheck(softmax)"), cell("check(softmax)", grade_id="b-test")]
    assert check_calls(nbformat.v4.new_notebook(cells=cells)) == {}


@pytest.mark.parametrize("chapter", chapter_names(ROOT))
def test_every_test_of_a_chapter_is_judged_outside_and_checks_an_exercise(chapter: str) -> None:
    notebook = instructor_notebook(read_chapter(source_path(ROOT, chapter)))
    calls = check_calls(notebook)
    assert set(calls) == {mark.grade_id for mark in graded_cells(notebook) if not mark.written}
    assert calls
    assert {call.exercise for call in calls.values()} <= set(exercise_names())
