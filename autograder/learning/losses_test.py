"""Notebooks as editors and mishaps leave them: neither an update nor a reset loses a word, and neither stops."""

import copy
import json
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.course_folder import chapter_path
from autograder.errors import CourseError
from autograder.learning.answers import model_answer
from autograder.learning.conftest import answer, correct, notebook_of, save
from autograder.learning.notebooks import by_grade_id, chapter_of
from autograder.learning.resetting import reset
from autograder.learning.updating import update
from autograder.testing.tiny_course import CHAPTER, RIGHT

WORK = f"{RIGHT['double']}\n# my real work"
PICTURE = {"i.png": {"image/png": "iVBORw0KGgo="}}
SHOWN = "\n![i](attachment:i.png)"


def updated(course: Path, notebook: NotebookNode | None = None) -> tuple[NotebookNode, list[str]]:
    """Save a notebook, correct its chapter and update it twice; return what there is then, and what was said."""
    if notebook is not None:
        save(course, notebook)
    correct(course, "Give back twice the input.", "Give back exactly twice the input.")
    _, said = update(course, CHAPTER)
    once = notebook_of(course)
    assert update(course, CHAPTER)[0] is None
    nbformat.validate(nbformat.read(chapter_path(course, CHAPTER), as_version=nbformat.NO_CONVERT))
    assert "exactly twice" in text_of(once)
    return once, said


def text_of(notebook: NotebookNode) -> str:
    """Return all that a notebook says."""
    return "\n".join(cell.source for cell in notebook.cells)


def place_of(notebook: NotebookNode, name: str) -> int:
    """Return where a marked cell stands."""
    return notebook.cells.index(by_grade_id(notebook)[name])


def change_format(course: Path, keep_ids: bool) -> None:
    """Save the notebook as Colab does, in format 4.0 with ids in the metadata, or as an editor without any ids."""
    path = chapter_path(course, CHAPTER)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["nbformat_minor"] = 0
    for cell in content["cells"]:
        name = cell.pop("id")
        if keep_ids:
            cell["metadata"]["id"] = name
    path.write_text(json.dumps(content), encoding="utf-8")


def doubled(course: Path, first: str | None, second: str) -> NotebookNode:
    """Return the notebook with an answer cell copied and pasted below itself, and each of the two worked in."""
    notebook = notebook_of(course)
    place = place_of(notebook, "double")
    twin = copy.deepcopy(notebook.cells[place])
    twin.id, twin.source = "copied", second
    if first is not None:
        notebook.cells[place].source = first
    notebook.cells.insert(place + 1, twin)
    return notebook


def test_work_in_the_second_of_two_cells_of_one_name_is_the_answer(course: Path) -> None:
    after, _ = updated(course, doubled(course, None, WORK))
    assert by_grade_id(after)["double"].source == WORK
    assert len(after.cells) == len(notebook_of(course).cells)


def test_two_different_answers_of_one_name_both_stay_and_it_is_said(course: Path) -> None:
    after, said = updated(course, doubled(course, "def double(x):\n    return x + x", WORK))
    assert by_grade_id(after)["double"].source == "def double(x):\n    return x + x"
    below = after.cells[place_of(after, "double") + 1]
    assert "my real work" in below.source
    assert "nbgrader" not in below.metadata
    assert any("double was there more than once" in sentence for sentence in said)


def test_an_answer_whose_cell_lost_its_mark_has_it_again(course: Path) -> None:
    notebook = notebook_of(course)
    cell = by_grade_id(notebook)["double"]
    cell.source, cell.metadata = WORK, NotebookNode()
    after, said = updated(course, notebook)
    assert by_grade_id(after)["double"].source == WORK
    assert any("had lost its mark" in sentence for sentence in said)


def test_an_answer_that_lost_mark_and_id_stays_as_a_cell(course: Path) -> None:
    notebook = notebook_of(course)
    notebook.cells[place_of(notebook, "double")] = new_code_cell(WORK, id="new")
    assert WORK in text_of(updated(course, notebook)[0])


def test_an_edit_in_a_check_stands_below_the_courses_own(course: Path) -> None:
    notebook = notebook_of(course)
    check = by_grade_id(notebook)["double-test"]
    original = check.source
    check.source += "\nprint('my own experiments')"
    after, said = updated(course, notebook)
    assert by_grade_id(after)["double-test"].source == original
    assert "my own experiments" in after.cells[place_of(after, "double-test") + 1].source
    assert any("your version stands below it" in sentence for sentence in said)


@pytest.mark.parametrize("header", ["Give back twice the input.", "Give back three times the input."])
def test_a_picture_pasted_into_a_text_stays_with_its_text(header: str, course: Path) -> None:
    notebook = notebook_of(course)
    cell = next(cell for cell in notebook.cells if header in cell.source)
    cell.source, cell.attachments = cell.source + SHOWN, PICTURE
    after, _ = updated(course, notebook)
    assert [cell.get("attachments") for cell in after.cells if SHOWN in cell.source] == [PICTURE]


def test_a_picture_in_a_written_answer_stays(course: Path) -> None:
    notebook = notebook_of(course)
    cell = by_grade_id(notebook)["why-written"]
    cell.source, cell.attachments = "Look:" + SHOWN, PICTURE
    assert by_grade_id(updated(course, notebook)[0])["why-written"].attachments == PICTURE


def test_a_picture_in_an_answer_turned_into_text_stays_below_it(course: Path) -> None:
    notebook = notebook_of(course)
    old = by_grade_id(notebook)["double"]
    turned = new_markdown_cell("Look:" + SHOWN, id=old.id, metadata=old.metadata, attachments=PICTURE)
    notebook.cells[place_of(notebook, "double")] = turned
    after, _ = updated(course, notebook)
    assert after.cells[place_of(after, "double") + 1].attachments == PICTURE


@pytest.mark.parametrize("keep_ids", [True, False], ids=["ids in the metadata", "no ids"])
def test_a_notebook_of_an_older_format_keeps_answers_and_doubles_nothing(keep_ids: bool, course: Path) -> None:
    answer(course, "double", WORK)
    notebook = notebook_of(course)
    notebook.cells.insert(2, new_code_cell("my_note = 1", id="mine"))
    save(course, notebook)
    change_format(course, keep_ids)
    after, _ = updated(course)
    assert by_grade_id(after)["double"].source == WORK
    assert after.cells[2].source == "my_note = 1"
    assert len(after.cells) == len(notebook.cells)


def test_a_text_that_nothing_tells_the_origin_of_stays(course: Path) -> None:
    notebook = notebook_of(course)
    del notebook.metadata["handed_out"]
    cell = next(cell for cell in notebook.cells if "Give back twice the input." in cell.source)
    cell.source += "\n\nMy remark."
    assert "My remark." in text_of(updated(course, notebook)[0])


def test_a_cell_with_four_backticks_is_quoted_whole(course: Path) -> None:
    notebook = notebook_of(course)
    by_grade_id(notebook)["double-test"].source += "\n# ````"
    after, _ = updated(course, notebook)
    assert "`````python" in text_of(after)


@pytest.mark.parametrize("lost", [["double"], ["double-test"], ["double", "double-test", "double-hidden-test"]])
def test_reset_brings_deleted_cells_back_to_their_place(lost: list[str], course: Path) -> None:
    notebook = notebook_of(course)
    fresh = copy.deepcopy(notebook)
    notebook.cells = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") not in lost]
    save(course, notebook)
    assert reset(course, "double")[1] is not None
    assert [cell.source for cell in notebook_of(course).cells] == [cell.source for cell in fresh.cells]


def test_reset_of_a_cell_of_another_type_makes_a_valid_notebook(course: Path) -> None:
    notebook = notebook_of(course)
    fresh, place = copy.deepcopy(notebook), place_of(notebook, "why-written")
    old = notebook.cells[place]
    notebook.cells[place] = new_code_cell("because", id=old.id, metadata=old.metadata)
    save(course, notebook)
    _, kept = reset(course, "why")
    nbformat.validate(nbformat.read(chapter_path(course, CHAPTER), as_version=nbformat.NO_CONVERT))
    assert notebook_of(course).cells[place] == fresh.cells[place]
    assert kept is not None
    assert "because" in kept.read_text(encoding="utf-8")


def test_reset_of_a_doubled_answer_leaves_one_starter(course: Path) -> None:
    fresh = notebook_of(course)
    save(course, doubled(course, None, WORK))
    reset(course, "double")
    assert [cell.source for cell in notebook_of(course).cells] == [cell.source for cell in fresh.cells]


def test_reset_of_an_answer_without_its_mark_gives_it_back(course: Path) -> None:
    notebook = notebook_of(course)
    fresh = copy.deepcopy(notebook)
    by_grade_id(notebook)["double"].metadata = NotebookNode()
    save(course, notebook)
    reset(course, "double")
    assert notebook_of(course) == fresh


def test_reset_works_in_a_notebook_of_an_older_format(course: Path) -> None:
    fresh = by_grade_id(notebook_of(course))["double"].source
    answer(course, "double", WORK)
    change_format(course, keep_ids=False)
    reset(course, "double")
    assert by_grade_id(notebook_of(course))["double"].source == fresh


def test_a_damaged_chapter_stops_no_other_and_is_named_when_nothing_has_the_exercise(course: Path) -> None:
    damaged = chapter_path(course, "00_first")
    damaged.parent.mkdir()
    damaged.write_text("{", encoding="utf-8")
    assert chapter_of(course, "double", ["00_first", CHAPTER])[0] == CHAPTER
    assert model_answer(course, "double").startswith("def double")
    with pytest.raises(CourseError, match=r"did you mean double.*00_first.ipynb cannot be read"):
        reset(course, "doubel")


def test_the_model_answer_is_there_when_the_cell_is_not(course: Path) -> None:
    notebook = notebook_of(course)
    notebook.cells = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") != "double"]
    save(course, notebook)
    assert "return 2 * x" in model_answer(course, "double")
