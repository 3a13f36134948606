"""Which answers are as an earlier grading saw them, so that what a person said of them needs no second look."""

from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.grading.cells import grade_id


def unchanged_cells(earlier: Path, notebook: str) -> set[str]:
    """Return the graded cells whose work is what it was: a written answer with the same text, or all of them.

    Points for a test cell depend on other cells, so it is unchanged only where the whole notebook is.

    Args:
        earlier: The notebook that an earlier grading left, if there is one.
        notebook: The text of the new one.
    """
    if not earlier.is_file():
        return set()
    after = nbformat.reads(notebook, nbformat.NO_CONVERT)
    try:
        before = nbformat.reads(earlier.read_text("utf-8"), nbformat.NO_CONVERT)
        sources = [cell.source for cell in before.cells]
        texts = {grade_id(cell): cell.source for cell in before.cells}
    except Exception:  # whatever is wrong with it, a damaged one says nothing
        return set()
    marked = {str(grade_id(cell)): cell for cell in after.cells if grade_id(cell) is not None}
    if sources == [cell.source for cell in after.cells]:
        return set(marked)
    return {name for name, cell in marked.items() if is_answer(cell) and texts.get(name) == cell.source}


def is_answer(cell: NotebookNode) -> bool:
    """Tell whether the student writes this cell."""
    return bool(cell.metadata["nbgrader"].get("solution"))
