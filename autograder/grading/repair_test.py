"""Repairs: what was lost comes back, what is whole stays untouched."""

import copy

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.build import solved_notebook, starter_notebook
from autograder.grading.cells import gives_points, grade_id
from autograder.grading.repair import repair_cells
from autograder.testing.tiny_course import CHAPTER, make_tiny_course


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory: pytest.TempPathFactory) -> tuple[NotebookNode, NotebookNode]:
    """Return a student's untouched notebook and the instructor's."""
    course = make_tiny_course(tmp_path_factory.mktemp("repair") / "course")
    return starter_notebook(course, CHAPTER), solved_notebook(course, CHAPTER)


@pytest.fixture
def student(notebooks: tuple[NotebookNode, NotebookNode]) -> NotebookNode:
    """Return a copy of the student's notebook to damage."""
    return copy.deepcopy(notebooks[0])


@pytest.fixture
def source(notebooks: tuple[NotebookNode, NotebookNode]) -> NotebookNode:
    """Return the instructor's notebook."""
    return notebooks[1]


def cell_of(notebook: NotebookNode, name: str) -> NotebookNode:
    """Return the cell with this grade_id."""
    return next(cell for cell in notebook.cells if grade_id(cell) == name)


def names(notebook: NotebookNode) -> list[str | None]:
    """Return the grade_ids in their order."""
    return [grade_id(cell) for cell in notebook.cells if grade_id(cell)]


def test_an_undamaged_notebook_stays_as_it_is(student: NotebookNode, source: NotebookNode) -> None:
    before = copy.deepcopy(student)
    assert repair_cells(student, source) == []
    assert student == before


def test_lost_metadata_comes_back_by_the_cell_id(student: NotebookNode, source: NotebookNode) -> None:
    expected = names(student)
    cell = cell_of(student, "why-written")
    cell.source, cell.metadata = "My answer.", nbformat.NotebookNode()
    [repair] = repair_cells(student, source)
    assert "why-written" in repair
    assert names(student) == expected
    assert cell_of(student, "why-written").source == "My answer."


@pytest.mark.parametrize("place", ["before", "after"])
def test_of_a_doubled_cell_the_original_is_graded(place: str, student: NotebookNode, source: NotebookNode) -> None:
    expected = names(student)
    original = cell_of(student, "double-test")
    twin = copy.deepcopy(original)
    twin["id"] = "twin"
    student.cells.insert(student.cells.index(original) + (place == "after"), twin)
    [repair] = repair_cells(student, source)
    assert "more than once" in repair
    assert names(student) == expected
    assert cell_of(student, "double-test")["id"] == original["id"]


@pytest.mark.parametrize("name", ["double-test", "double-hidden-test", "triple-test", "why-written"])
def test_a_deleted_graded_cell_returns_to_its_place(name: str, student: NotebookNode, source: NotebookNode) -> None:
    expected = names(student)
    student.cells.remove(cell_of(student, name))
    [repair] = repair_cells(student, source)
    assert name in repair
    assert names(student) == expected
    nbformat.validate(student)


def test_a_notebook_without_any_cell_gets_every_graded_cell(source: NotebookNode) -> None:
    empty = nbformat.v4.new_notebook()
    repairs = repair_cells(empty, source)
    expected = [grade_id(cell) for cell in source.cells if gives_points(cell)]
    assert names(empty) == expected
    assert len(repairs) == len(expected)


def test_a_deleted_answer_is_not_invented(student: NotebookNode, source: NotebookNode) -> None:
    student.cells.remove(cell_of(student, "double"))
    assert repair_cells(student, source) == []
    assert "double" not in names(student)
