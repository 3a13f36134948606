"""The instructor's notebook: nbgrader's metadata, generated lines, and ids that stay."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.authoring.chapter_source import read_chapter
from autograder.authoring.example_chapter import TEXT, changed
from autograder.authoring.instructor import instructor_notebook
from autograder.authoring.roles import BuildError


def make(folder: Path, text: str = TEXT) -> NotebookNode:
    """Make the instructor's notebook of a text."""
    path = folder / "01_toy.py"
    path.write_text(text, encoding="utf-8")
    return instructor_notebook(read_chapter(path))


def test_notebook_is_valid_and_says_its_kernel_and_title(tmp_path: Path) -> None:
    notebook = make(tmp_path)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.title == "Toys: a first chapter"


def test_opening_ends_with_the_totals_of_the_chapter(tmp_path: Path) -> None:
    opening = make(tmp_path).cells[0].source
    assert opening.endswith("say why.\n\n**45 minutes · 8 points · 2 exercises · 1 written question**")


def test_long_chapters_are_counted_in_hours(tmp_path: Path) -> None:
    opening = make(tmp_path, changed("minutes=20", "minutes=100")).cells[0].source
    assert "**2 hours 5 minutes ·" in opening


def test_header_line_follows_the_heading_and_adds_up_the_points(tmp_path: Path) -> None:
    header = make(tmp_path).cells[3].source
    assert header == (
        "## Double\n\n**10 minutes · 3 points · about 2 lines · difficulty 2 of 5**\n\nReturn twice the number."
    )


def test_header_without_a_heading_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"cell 4 .* must be a heading"):
        make(tmp_path, changed("# ## Double\n", "# Double\n"))


SECOND = {
    "header": '# %% [markdown] exercise="repaired" role="header" minutes=1\n# ## Again\n',
    "answer": '# %% exercise="repaired" role="answer"\n# BEGIN SOLUTION\nx = 1\n# END SOLUTION\n',
    "written": '# %% [markdown] exercise="why_doubling" points=1 role="written"\n# So.\n',
    "opening": '# %% [markdown] role="opening"\n# # Again\n',
}


@pytest.mark.parametrize("role", SECOND)
def test_a_second_cell_of_a_role_that_comes_once_is_refused(role: str, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=f"already has a cell with role '{role}'"):
        make(tmp_path, f"{TEXT}\n{SECOND[role]}")


def test_roles_become_the_marks_that_nbgrader_reads(tmp_path: Path) -> None:
    marks = {
        cell.metadata.nbgrader.grade_id: (
            cell.metadata.nbgrader.grade,
            cell.metadata.nbgrader.locked,
            cell.metadata.nbgrader.solution,
            cell.metadata.nbgrader.get("points"),
        )
        for cell in make(tmp_path).cells
        if "nbgrader" in cell.metadata
    }
    assert marks == {
        "double": (False, False, True, None),
        "double-test": (True, True, False, 1),
        "double-hidden-test": (True, True, False, 2),
        "repaired": (False, False, True, None),
        "repaired-test": (True, True, False, 1),
        "repaired-hidden-test": (True, True, False, 1),
        "why_doubling-written": (True, False, True, 3),
    }
    assert all(re.fullmatch("[a-zA-Z0-9_-]+", grade_id) for grade_id in marks)


def test_ids_of_other_sections_survive_an_inserted_cell(tmp_path: Path) -> None:
    before = {cell.source: cell.id for cell in make(tmp_path).cells}
    more = make(tmp_path, changed("# %% long=true", "# %% [markdown]\n# One more thing.\n\n# %% long=true"))
    moved = [cell.source for cell in more.cells if before.get(cell.source, cell.id) != cell.id]
    assert moved == ["import math"]
    assert len({cell.id for cell in more.cells}) == len(more.cells)


def test_two_sections_of_one_name_get_different_ids(tmp_path: Path) -> None:
    notebook = make(tmp_path, TEXT + "\n# %% [markdown]\n# ## Ready\n# Again.\n")
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    nbformat.validate(notebook)


def test_a_chapter_without_graded_cells_has_no_empty_totals(tmp_path: Path) -> None:
    notebook = make(tmp_path, '# %% [markdown] role="opening"\n# # Start here\n')
    assert notebook.cells[0].source == "# Start here"
