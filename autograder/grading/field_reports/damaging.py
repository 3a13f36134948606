"""Damage to a notebook's cells, as people and programs do it."""

from __future__ import annotations

import copy
from collections.abc import Callable

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output, new_raw_cell

from autograder.grading.cells import grade_id

Damage = Callable[[NotebookNode], None]
TEST, ANSWER, ESSAY = "double-test", "double", "why-written"
LINE_BYTES = 50 * 2**20


def place_of(notebook: NotebookNode, name: str) -> int:
    """Return where a marked cell stands."""
    return next(place for place, cell in enumerate(notebook.cells) if grade_id(cell) == name)


def is_test(cell: NotebookNode) -> bool:
    """Return whether a cell is a test."""
    return "test" in str(grade_id(cell))


def paste_copies(name: str, number: int = 1, same_id: bool = False) -> Damage:
    """Paste copies of a cell behind it, which keep nbgrader's name of it."""

    def damage(notebook: NotebookNode) -> None:
        place = place_of(notebook, name)
        copies = [copy.deepcopy(notebook.cells[place]) for _ in range(number)]
        for count, twin in enumerate(copies):
            twin["id"] = twin["id"] if same_id else f"pasted-{count}"
        notebook.cells[place + 1 : place + 1] = copies

    return damage


def lose(name: str) -> Damage:
    """Delete a cell."""

    def damage(notebook: NotebookNode) -> None:
        del notebook.cells[place_of(notebook, name)]

    return damage


def lose_locked_cells(notebook: NotebookNode) -> None:
    """Delete every test, as editors do that know no locked cells."""
    notebook.cells = [cell for cell in notebook.cells if not is_test(cell)]


def write_essay(notebook: NotebookNode) -> None:
    """Answer the written question in a cell that has lost its metadata."""
    cell = notebook.cells[place_of(notebook, ESSAY)]
    cell.source, cell.metadata = "Since it is a sum of two equal numbers.", NotebookNode()


def lose_marks(ids_too: bool) -> Damage:
    """Take every cell's metadata away, and its id as well where a program knows no ids."""

    def damage(notebook: NotebookNode) -> None:
        for cell in notebook.cells:
            cell.metadata = NotebookNode()
            if ids_too:
                del cell["id"]

    return damage


def become_text(notebook: NotebookNode) -> None:
    """Turn a test into text."""
    place = place_of(notebook, TEST)
    old = notebook.cells[place]
    notebook.cells[place] = new_markdown_cell(old.source, metadata=old.metadata, id=old.id)


def claim_another_type(notebook: NotebookNode) -> None:
    """Let the marks of a test say that it is text, and those of the essay that it is code."""
    notebook.cells[place_of(notebook, TEST)].metadata.nbgrader["cell_type"] = "markdown"
    notebook.cells[place_of(notebook, ESSAY)].metadata.nbgrader["cell_type"] = "code"


def add_to_a_test(line: str) -> Damage:
    """Write a line into a locked cell."""

    def damage(notebook: NotebookNode) -> None:
        cell = notebook.cells[place_of(notebook, TEST)]
        cell.source = f"{line}\n{cell.source}"

    return damage


def unlock_and_empty_tests(notebook: NotebookNode) -> None:
    """Make the tests editable, and empty them."""
    for cell in filter(is_test, notebook.cells):
        cell.metadata.update(editable=True, deletable=True)
        cell.metadata.nbgrader.update(locked=False)
        cell.source = "pass"


def move_a_test_up(notebook: NotebookNode) -> None:
    """Put a test in front of everything."""
    notebook.cells.insert(0, notebook.cells.pop(place_of(notebook, TEST)))


def old_schema(notebook: NotebookNode) -> None:
    """Describe the marked cells as nbgrader's first schema did."""
    for cell in notebook.cells:
        if grade_id(cell):
            cell.metadata.nbgrader.pop("cell_type", None)
            cell.metadata.nbgrader["schema_version"] = 1


def add_cell(source: str) -> Damage:
    """Add a code cell at the end."""

    def damage(notebook: NotebookNode) -> None:
        notebook.cells.append(new_code_cell(source))

    return damage


def put_first(source: str) -> Damage:
    """Put a code cell in front of everything."""

    def damage(notebook: NotebookNode) -> None:
        notebook.cells.insert(0, new_code_cell(source))

    return damage


def raw_on_top(notebook: NotebookNode) -> None:
    """Put a raw cell in front of everything."""
    notebook.cells.insert(0, new_raw_cell("---\ntitle: mine\n---"))


def save_a_huge_output(notebook: NotebookNode) -> None:
    """Keep an output of one endless line in the file."""
    cell = notebook.cells[place_of(notebook, ANSWER)]
    cell.outputs = [new_output("stream", text="x" * LINE_BYTES)]


def name_kernel(kernelspec: dict[str, str] | None) -> Damage:
    """Say that the notebook was made with a kernel that is not there, or with none."""

    def damage(notebook: NotebookNode) -> None:
        notebook.metadata["kernelspec"] = kernelspec

    return damage


def save_widgets(notebook: NotebookNode) -> None:
    """Keep a view of a widget whose state was not kept."""
    view = "application/vnd.jupyter.widget-view+json"
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"version_major": 2}}
    cell = notebook.cells[place_of(notebook, ANSWER)]
    cell.outputs = [new_output("display_data", {view: {"model_id": "gone"}, "text/plain": "a slider"})]


def together(*damages: Damage) -> Damage:
    """Do one damage after the other."""

    def damage(notebook: NotebookNode) -> None:
        for one in damages:
            one(notebook)

    return damage
