"""Every kind of secret is planted in a student's notebook once, and found."""

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.authoring.example_chapter import NAME, changed, example_course
from autograder.authoring.leaks import leaks
from autograder.authoring.making import make_chapter
from autograder.course_folder import source_path

BELIEF = "Each column of your weights sums to 1, but each row should."


def found(folder: Path, plant: Callable[[NotebookNode], None]) -> list[str]:
    """Plant something in the released example and list what the search finds."""
    course = example_course(folder, changed("check(repaired, hidden=True)", HIDDEN))
    made = make_chapter(source_path(course, NAME), course)
    student = nbformat.reads(made.student, as_version=4)
    plant(student)
    return leaks(NAME, student, made.source, [BELIEF])


HIDDEN = "check(repaired, hidden=True)\nassert repaired(-123456789012345) == 123456789012345"


def cell(student: NotebookNode, grade_id: str) -> NotebookNode:
    """Find a graded cell."""
    return next(c for c in student.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


def test_released_example_holds_no_secret(tmp_path: Path) -> None:
    assert found(tmp_path, lambda student: None) == []


def add(text: str) -> Callable[[NotebookNode], None]:
    """Return a planter that adds a markdown cell."""
    return lambda student: student.cells.append(nbformat.v4.new_markdown_cell(text))


def in_output(student: NotebookNode) -> None:
    """Plant a solution line in an output, as when a notebook was saved after running."""
    output = nbformat.v4.new_output("stream", text="    twice_the_number = number + number + 0 * number\n")
    cell(student, "double").outputs.append(output)


def hidden_cell_unstripped(student: NotebookNode) -> None:
    """Plant one more line in the cell whose tests are hidden."""
    cell(student, "double-hidden-test").source += "\nassert double(3) == 6"


def in_metadata(student: NotebookNode) -> None:
    """Plant a model answer in the notebook's metadata."""
    student.metadata["note"] = "because multiplication distributes over addition."


PLANTS = {
    "a whole solution": (add("```\ndef repaired(n):\n    return abs(number)\n```"), "the solution of repaired"),
    "a telling line": (add("Try twice_the_number = number+number+0*number"), "a line of the solution of double"),
    "a line in an output": (in_output, "a line of the solution of double"),
    "a hidden test line": (
        add("assert repaired(-123456789012345) == 123456789012345"),
        "a hidden test line of repaired",
    ),
    "a hidden cell that shows more": (hidden_cell_unstripped, "hidden test cell of double shows more"),
    "a mark": (add("# BEGIN SOLUTION"), "the words BEGIN SOLUTION"),
    "a model answer": (add("It is because multiplication\ndistributes over addition."), "model answer of why_doubling"),
    "a rubric line": (add("You get 2 points for naming the law there"), "model answer of why_doubling"),
    "a model answer in metadata": (in_metadata, "model answer of why_doubling"),
    "a misconception": (add("each column of your weights\nsums to 1, but each row should."), "a misconception"),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_planted_secret_is_found(plant: str, tmp_path: Path) -> None:
    planter, words = PLANTS[plant]
    problems = found(tmp_path, planter)
    assert any(words in problem for problem in problems), problems


def test_short_lines_and_the_public_hidden_call_are_no_leak(tmp_path: Path) -> None:
    assert found(tmp_path, add("Call `check(double, hidden=True)`, or `return number`.")) == []
