"""Put back what a student cannot change: locked cells, marks and types, and tests behind what they test."""

from __future__ import annotations

import copy
import re

from nbformat import NotebookNode

from autograder.grading.cells import exercise_of, gives_points, grade_id
from autograder.grading.kit import ChapterKit
from autograder.grading.repair import DEFINITION
from autograder.grading.verdicts import quote

STUB = re.compile(r"^raise NotImplementedError\b", re.MULTILINE)


def overwrite_cells(notebook: NotebookNode, kit: ChapterKit) -> list[str]:
    """Give marked cells the source's marks, type and locked text in place; return a sentence for each change."""
    repairs = []
    for cell in notebook.cells:
        name = grade_id(cell)
        original = kit.marked.get(str(name))
        if original is None:
            cell.metadata.pop("nbgrader", None)
            continue
        if cell.cell_type != original.cell_type:
            repairs.append(f"The cell {name} had become a {cell.cell_type} cell; its type was put back.")
            change_type(cell, original.cell_type)
        cell.metadata = copy.deepcopy(original.metadata)
        if is_locked(original):
            repairs += put_back(cell, original, kit.released.get(str(name), ""))
        elif cell.cell_type == "code" and STUB.search(cell.source) and DEFINITION.search(cell.source):
            cell.source = STUB.sub("# \\g<0>", cell.source)
            repairs.append(
                f"The cell {name} still raised NotImplementedError outside of its code; that line is not run."
            )
    return repairs + put_tests_behind_answers(notebook)


def is_locked(cell: NotebookNode) -> bool:
    """Return whether students may not change a cell of the source."""
    marks = cell.metadata["nbgrader"]
    return not marks.get("solution") and bool(marks.get("grade") or marks.get("locked"))


def change_type(cell: NotebookNode, kind: str) -> None:
    """Make a cell one of another type."""
    cell.cell_type = kind
    cell.pop("attachments", None)
    if kind == "code":
        cell.outputs, cell.execution_count = [], None
    else:
        cell.pop("outputs", None)
        cell.pop("execution_count", None)


def put_back(cell: NotebookNode, original: NotebookNode, released: str) -> list[str]:
    """Restore a locked cell; say what a student had added there, since it is not run."""
    found = cell.source.strip()
    cell.source = original.source
    if found in (released.strip(), original.source.strip()):
        return []
    known = {line.strip() for line in original.source.splitlines()}
    added = [line for line in found.splitlines() if line.strip() and line.strip() not in known]
    what = f" What was added there is not run: {quote(added[0])}" if added else ""
    return [f"The locked cell {grade_id(original)} had been changed; it was put back.{what}"]


def put_tests_behind_answers(notebook: NotebookNode) -> list[str]:
    """Move a test that runs before its answer to the place behind it."""
    repairs = []
    answers = {exercise_of(cell): cell for cell in notebook.cells if grade_id(cell) and not gives_points(cell)}
    for test in [cell for cell in notebook.cells if gives_points(cell)]:
        answer = answers.get(exercise_of(test))
        places = {id(cell): place for place, cell in enumerate(notebook.cells)}
        if answer is None or places[id(test)] > places[id(answer)]:
            continue
        del notebook.cells[places[id(test)]]
        place = next(place for place, cell in enumerate(notebook.cells) if cell is answer) + 1
        while place < len(notebook.cells) and exercise_of_test(notebook.cells[place]) == exercise_of(test):
            place += 1
        notebook.cells.insert(place, test)
        repairs.append(f"The test {grade_id(test)} stood before its answer; it was moved behind it.")
    return repairs


def exercise_of_test(cell: NotebookNode) -> str | None:
    """Return the exercise of a cell that gives points, or None for any other cell."""
    return exercise_of(cell) if gives_points(cell) else None
