"""Start an exercise over: its cells become the starter's again, and a copy keeps what was there."""

import copy
from pathlib import Path

from nbformat import NotebookNode

from autograder.course_folder import chapter_path, learner_chapters
from autograder.errors import CourseError
from autograder.learning.notebooks import (
    chapter_of,
    known_role,
    likes,
    pristine_notebook,
    replace_notebook,
    tell_ids_apart,
)


def reset(course: Path, exercise: str) -> tuple[Path, Path | None]:
    """Put the starter of an exercise back; return the notebook, and the copy of what was there (None if unchanged).

    A deleted cell comes back behind the cell that it stood behind; of a doubled one a single cell is left.

    Raises:
        CourseError: there is no such exercise, or its starter is not at hand.
    """
    chapter, notebook = chapter_of(course, exercise, learner_chapters(course))
    path = chapter_path(course, chapter)
    today = pristine_notebook(course, chapter)
    wanted = [at for at, cell in enumerate(today.cells) if (role := known_role(cell)) and role[0] == exercise]
    if not wanted:
        raise CourseError(f"The chapter of today has no {exercise}; `course update {chapter}` takes it in first.")
    if all(is_the_starter(today.cells[at], likes(today.cells[at], notebook)) for at in wanted):
        return path, None
    for at in wanted:
        put_back(today, at, notebook)
    tell_ids_apart(notebook.cells)
    return path, replace_notebook(path, notebook)


def is_the_starter(starter: NotebookNode, found: list[NotebookNode]) -> bool:
    """Return whether a cell is there once, as it was handed out, whatever it printed."""
    parts = [(one.source, one.cell_type, one.metadata.get("nbgrader")) for one in (starter, *found)]
    return len(found) == 1 and parts[0] == parts[1]


def put_back(today: NotebookNode, at: int, notebook: NotebookNode) -> None:
    """Put one starter where its likes stand, or behind the nearest cell before it that the learner still has."""
    starter = copy.deepcopy(today.cells[at])
    old = likes(starter, notebook)
    if old:
        place = index_of(old[0], notebook)
        drop = {id(cell) for cell in old[1:]}
        notebook.cells[place] = starter
        notebook.cells = [cell for cell in notebook.cells if id(cell) not in drop]
        return
    before = (likes(cell, notebook) for cell in reversed(today.cells[:at]))
    nearest = next((found[-1] for found in before if found), None)
    notebook.cells.insert(0 if nearest is None else index_of(nearest, notebook) + 1, starter)


def index_of(cell: NotebookNode, notebook: NotebookNode) -> int:
    """Return the place of this very cell, which another may equal."""
    return next(at for at, one in enumerate(notebook.cells) if one is cell)
