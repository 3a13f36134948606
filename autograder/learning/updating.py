"""Take a corrected chapter into a notebook with answers, and lose no answer.

Every cell meets its like in the new chapter: a marked cell by nbgrader's name, any other, and one that lost its mark,
by its id. What the learner changed stays; what the learner left alone becomes the new text. Where both changed a cell,
the new text comes and the learner's stands below it. A text of the learner's that has no place is shown, never dropped.
"""

import copy
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from autograder.authoring.handed_out import as_handed_out, fingerprint
from autograder.course_folder import chapter_path
from autograder.grading.cells import grade_id
from autograder.learning.notebooks import learner_notebook, likes, pristine_notebook, replace_notebook, tell_ids_apart
from autograder.learning.progress import is_as_handed_out

EARLIER = "**Your earlier version of the cell above**, which was corrected since:"
OTHER = "**Another version of your answer above**, which stood in a cell of the same name:"
CHECK = "**Your version of the check above**, which is the course's own again:"
GONE = "**Your answer to an exercise that this chapter no longer has**:"


@dataclass
class Merge:
    """The new notebook, and what was done in sentences.

    Args:
        before: How the learner's cells were handed out: a fingerprint by id.
        place: By the identity of a learner's cell, the last cell that stands for it.
    """

    notebook: NotebookNode
    before: dict[str, str]
    said: list[str] = field(default_factory=list)
    place: dict[int, NotebookNode] = field(default_factory=dict)


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
    mine = copy.deepcopy(mine)
    merge = Merge(copy.deepcopy(today), as_handed_out(mine))
    merge.notebook.metadata = mine.metadata | copy.deepcopy(today.metadata)
    merge.notebook.nbformat_minor = max(mine.nbformat_minor, today.nbformat_minor)
    cells: list[NotebookNode] = []
    for cell in merge.notebook.cells:
        olds = likes(cell, mine)
        group = [cell]
        if olds:
            group = take_plain(cell, olds[0], merge) if grade_id(cell) is None else take_marked(cell, olds, merge)
        cells += group
        merge.place |= {id(old): group[-1] for old in olds}
    keep_what_has_no_like(mine, cells, merge)
    tell_ids_apart(cells)
    merge.notebook.cells = cells
    return merge


def take_marked(cell: NotebookNode, olds: list[NotebookNode], merge: Merge) -> list[NotebookNode]:
    """Return today's cell with the learner's answer in it, and every other text of the learner's below it.

    Of several cells of one name the first that was worked in is the answer; a check stays today's.
    """
    name, is_answer = str(grade_id(cell)), cell.metadata["nbgrader"].get("solution")
    worked = [old for old in olds if is_worked_in(old, merge.before) and old.source != cell.source]
    if is_answer and worked:
        take_text(cell, worked[0])
        worked = [old for old in worked if old.source != cell.source or lacks_pictures(cell, old)]
    elif not worked and cell.source != olds[0].source:
        merge.said.append(f"The cell {name} was corrected.")
    if any(grade_id(old) is None for old in olds):
        merge.said.append(f"The cell {name} had lost its mark for the checks; it has it again.")
    for old in reversed(olds):
        keep_outputs(cell, old)
    below = [quoted(OTHER if is_answer else CHECK, old) for old in worked if old.source.strip()]
    if below and is_answer:
        merge.said.append(f"The cell {name} was there more than once; what it does not hold stands below it.")
    elif below:
        merge.said.append(f"The check {name} is the course's own again; your version stands below it.")
    return [cell, *below]


def take_plain(cell: NotebookNode, old: NotebookNode, merge: Merge) -> list[NotebookNode]:
    """Return today's cell, a learner's version of it, or both."""
    handed_out = merge.before.get(cell.id)
    if cell.source == old.source or fingerprint(old.source) == handed_out:
        if cell.source != old.source:
            merge.said.append(f"The cell {cell.id} was corrected.")
        keep_outputs(cell, old)
        return [cell]
    if fingerprint(cell.source) == handed_out:
        if cell.cell_type != old.cell_type:
            return [old]
        take_text(cell, old)
        keep_outputs(cell, old)
        return [cell]
    doubt = "you had changed it" if handed_out else "nothing says whether you had changed it"
    merge.said.append(f"The cell {cell.id} was corrected, and {doubt}: your version stands below it.")
    return [cell, quoted(EARLIER, old)]


def is_worked_in(cell: NotebookNode, before: dict[str, str]) -> bool:
    """Return whether a learner changed a cell, or lost the mark that would tell."""
    if grade_id(cell) is None:
        return before.get(cell.id) != fingerprint(cell.source)
    return not is_as_handed_out(cell)


def take_text(cell: NotebookNode, old: NotebookNode) -> None:
    """Put a learner's text into today's cell, with the pictures pasted into it where the cell can hold any."""
    cell.source = old.source
    if old.get("attachments") and cell.cell_type != "code":
        cell.attachments = old.attachments


def lacks_pictures(cell: NotebookNode, old: NotebookNode) -> bool:
    """Return whether a learner's pasted pictures did not come along."""
    return bool(old.get("attachments")) and cell.get("attachments") != old.attachments


def keep_outputs(cell: NotebookNode, old: NotebookNode) -> None:
    """Keep what a cell printed, where its text is the same."""
    if cell.cell_type == old.cell_type == "code" and cell.source == old.source:
        cell.outputs, cell.execution_count = old.outputs, old.execution_count


def keep_what_has_no_like(mine: NotebookNode, cells: list[NotebookNode], merge: Merge) -> None:
    """Put the learner's own cells behind the cells that they stood behind, and lost answers to the end."""
    behind = None
    for cell in mine.cells:
        if id(cell) in merge.place:
            behind = merge.place[id(cell)]
        elif not is_worked_in(cell, merge.before):
            continue
        elif grade_id(cell) is not None:
            cells.append(quoted(GONE, cell))
            merge.said.append(f"{grade_id(cell)} is no exercise any more; your answer stands at the end.")
        else:
            at = next((at for at, one in enumerate(cells) if one is behind), -1)
            cells.insert(at + 1, cell)
            behind = cell


def quoted(words: str, cell: NotebookNode) -> NotebookNode:
    """Return a cell that shows another one's text, with its pictures, without running it."""
    fence = "````"
    while fence in cell.source:
        fence += "`"
    shown = f"{fence}python\n{cell.source}\n{fence}" if cell.cell_type == "code" else cell.source
    text = f"{words}\n\n{shown}"
    return new_markdown_cell(text, id=f"earlier-{fingerprint(text)}", **pictures_of(cell))


def pictures_of(cell: NotebookNode) -> dict[str, NotebookNode]:
    """Return the pictures pasted into a cell, as a new cell takes them."""
    return {"attachments": cell.attachments} if cell.get("attachments") else {}
