"""Take a corrected chapter into a notebook with answers, and lose no answer.

Every cell meets its like in the new chapter: a marked cell by nbgrader's name, any other by its id. What the learner
changed stays; what the learner left alone becomes the new text. Where both changed a cell, the new text comes
and the learner's stands below it.
"""

import copy
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from autograder.authoring.handed_out import as_handed_out, fingerprint
from autograder.course_folder import chapter_path
from autograder.grading.cells import grade_id
from autograder.learning.notebooks import by_grade_id, learner_notebook, pristine_notebook, replace_notebook
from autograder.learning.progress import is_as_handed_out

EARLIER = "**Your earlier version of the cell above**, which was corrected since:"
GONE = "**Your answer to an exercise that this chapter no longer has**:"


@dataclass
class Merge:
    """The new notebook, and what was done in sentences."""

    notebook: NotebookNode
    said: list[str] = field(default_factory=list)


def update(course: Path, chapter: str) -> tuple[Path | None, list[str]]:
    """Bring a learner's notebook up to the chapter of today; return the kept copy, and what was done.

    Raises:
        CourseError: there is no notebook, it is damaged, or today's chapter is not at hand.
    """
    path = chapter_path(course, chapter)
    mine = learner_notebook(path)
    merged = merge(mine, pristine_notebook(course, chapter))
    if merged.notebook == mine:
        return None, [f"{chapter} is up to date."]
    return replace_notebook(path, merged.notebook), merged.said


def merge(mine: NotebookNode, today: NotebookNode) -> Merge:
    """Return today's chapter with a learner's answers, changes and own cells in it."""
    merge = Merge(copy.deepcopy(today))
    merge.notebook.metadata = copy.deepcopy(mine.metadata) | copy.deepcopy(today.metadata)
    merge.notebook.nbformat_minor = max(mine.nbformat_minor, today.nbformat_minor)
    before, marked = as_handed_out(mine), by_grade_id(mine)
    plain = {cell.get("id"): cell for cell in mine.cells if grade_id(cell) is None}
    cells: list[NotebookNode] = []
    for cell in merge.notebook.cells:
        name = grade_id(cell)
        old = plain.get(cell.id) if name is None else marked.get(str(name))
        if old is not None and name is not None:
            take_answer(cell, old, merge)
        elif old is not None:
            cells += take_plain(cell, old, before, merge)
            continue
        cells.append(cell)
    keep_what_has_no_like(mine, before, cells, merge)
    merge.notebook.cells = cells
    return merge


def take_answer(cell: NotebookNode, old: NotebookNode, merge: Merge) -> None:
    """Put a learner's answer into today's cell; a test cell stays today's."""
    if cell.metadata["nbgrader"].get("solution") and not is_as_handed_out(old):
        cell.source = old.source
        if "attachments" in old:
            cell.attachments = old.attachments
    elif cell.source != old.source:
        merge.said.append(f"The cell {cell.metadata['nbgrader']['grade_id']} was corrected.")
    keep_outputs(cell, old)


def take_plain(cell: NotebookNode, old: NotebookNode, before: dict[str, str], merge: Merge) -> list[NotebookNode]:
    """Return today's cell, a learner's version of it, or both."""
    handed_out = before.get(cell.id)
    mine_is_new = handed_out is not None and fingerprint(old.source) != handed_out
    todays_is_new = fingerprint(cell.source) != handed_out
    if cell.source == old.source or not mine_is_new:
        if cell.source != old.source:
            merge.said.append(f"The cell {cell.id} was corrected.")
        keep_outputs(cell, old)
        return [cell]
    if not todays_is_new and cell.cell_type == old.cell_type:
        cell.source = old.source
        keep_outputs(cell, old)
        return [cell]
    merge.said.append(f"The cell {cell.id} was corrected, and you had changed it: your version stands below it.")
    return [cell, quoted(EARLIER, old)]


def keep_outputs(cell: NotebookNode, old: NotebookNode) -> None:
    """Keep what a cell printed, where its text is the same."""
    if cell.cell_type == old.cell_type == "code" and cell.source == old.source:
        cell.outputs, cell.execution_count = old.outputs, old.execution_count


def keep_what_has_no_like(mine: NotebookNode, before: dict[str, str], cells: list[NotebookNode], merge: Merge) -> None:
    """Put the learner's own cells behind the cells that they stood behind, and lost answers to the end."""
    todays_ids = {cell.id for cell in merge.notebook.cells}
    todays_names = set(by_grade_id(merge.notebook))
    behind = None
    for cell in mine.cells:
        name = grade_id(cell)
        if name is not None:
            if name in todays_names:
                behind = str(name)
            elif cell.metadata["nbgrader"].get("solution") and not is_as_handed_out(cell):
                cells.append(quoted(GONE, cell))
                merge.said.append(f"{name} is no exercise any more; your answer stands at the end.")
            continue
        if cell.get("id") in todays_ids:
            behind = cell.id
        elif before.get(cell.get("id")) != fingerprint(cell.source):
            place = next((at for at, one in enumerate(cells) if behind in (one.id, grade_id(one))), -1)
            cells.insert(place + 1, cell)
            behind = cell.get("id")


def quoted(words: str, cell: NotebookNode) -> NotebookNode:
    """Return a cell that shows another one's text without running it."""
    fence = "````"
    text = (
        f"{words}\n\n{fence}python\n{cell.source}\n{fence}" if cell.cell_type == "code" else f"{words}\n\n{cell.source}"
    )
    return new_markdown_cell(text, id=f"earlier-{fingerprint(text)}")
