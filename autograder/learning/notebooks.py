"""Read, find and write a learner's notebooks, and the starters that they came from."""

import os
import warnings
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.authoring.manifest import keep_copy
from autograder.authoring.release import write_notebook
from autograder.build import starter_notebook
from autograder.course_folder import chapter_path, source_path, starter_path
from autograder.errors import CourseError
from autograder.grading.cells import grade_id, role_of


def learner_notebook(path: Path) -> NotebookNode:
    """Read a learner's notebook.

    Raises:
        CourseError: there is none, or it cannot be read.
    """
    if not path.is_file():
        raise CourseError(f"There is no notebook {path}; `course build` makes the chapters.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ids that an old editor left out are given on reading
            return nbformat.read(path, as_version=4)
    except Exception as error:  # nbformat raises what the damage happens to cause
        raise CourseError(f"{path} cannot be read as a notebook: {type(error).__name__}; is it damaged?") from error


def pristine_notebook(course: Path, chapter: str) -> NotebookNode:
    """Return the chapter as it is handed out today.

    Raises:
        CourseError: this copy of the course has neither the chapter's source nor its starter.
    """
    if source_path(course, chapter).is_file():
        return starter_notebook(course, chapter)
    if starter_path(course, chapter).is_file():
        return nbformat.read(starter_path(course, chapter), as_version=4)
    raise CourseError(f"This copy of the course has no starter of {chapter}; ask for it where you got the course.")


def replace_notebook(path: Path, notebook: NotebookNode) -> Path:
    """Write a learner's notebook whole or not at all; return the copy of what was there."""
    copy = keep_copy(path)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(write_notebook(notebook), encoding="utf-8", newline="\n")
    os.replace(draft, path)
    return copy


def cells_of(notebook: NotebookNode, exercise: str) -> list[NotebookNode]:
    """Return an exercise's answer, test and written cells in their order."""
    return [cell for cell in notebook.cells if (role := known_role(cell)) is not None and role[0] == exercise]


def known_role(cell: NotebookNode) -> tuple[str, str] | None:
    """Return exercise and role of a marked cell; None for any other, also for a foreign mark."""
    try:
        return role_of(cell)
    except ValueError:
        return None


def by_grade_id(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """Return the marked cells by nbgrader's name; of a doubled one the first counts."""
    found: dict[str, NotebookNode] = {}
    for cell in notebook.cells:
        name = grade_id(cell)
        if name is not None:
            found.setdefault(str(name), cell)
    return found


def chapter_of(course: Path, exercise: str, chapters: list[str]) -> tuple[str, NotebookNode]:
    """Return the chapter that has an exercise, and the learner's notebook of it.

    Raises:
        CourseError: no chapter has such an exercise; the sentence offers the nearest names.
    """
    import difflib

    names: list[str] = []
    for chapter in chapters:
        path = chapter_path(course, chapter)
        if not path.is_file():
            continue
        notebook = learner_notebook(path)
        found = {role[0] for cell in notebook.cells if (role := known_role(cell)) is not None}
        if exercise in found:
            return chapter, notebook
        names += sorted(found)
    close = difflib.get_close_matches(exercise, names, n=2)
    hint = f"did you mean {' or '.join(close)}?" if close else "`course progress` lists them."
    raise CourseError(f"No chapter has an exercise {exercise!r}; {hint}")
