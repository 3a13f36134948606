"""Read, find and write a learner's notebooks, and the starters that they came from."""

import difflib
import os
import re
import warnings
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.authoring.handed_out import as_handed_out, fingerprint
from autograder.authoring.manifest import keep_copy
from autograder.authoring.release import write_notebook
from autograder.build import starter_notebook
from autograder.course_folder import chapter_path, source_path, starter_path
from autograder.errors import CourseError
from autograder.grading.cells import grade_id, role_of

FIRST_MINOR_WITH_IDS = 5  # nbformat 4.5
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # what nbformat allows
LONGEST_ID = 60  # with room for a number behind it


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
            return with_ids(nbformat.read(path, as_version=4))
    except Exception as error:  # nbformat raises what the damage happens to cause
        raise CourseError(f"{path} cannot be read as a notebook: {type(error).__name__}; is it damaged?") from error


def with_ids(notebook: NotebookNode) -> NotebookNode:
    """Give every cell of a notebook the id that it was handed out with, and any other a new one.

    Formats before 4.5 know no ids: Colab writes them into the metadata, older editors drop them. Then nbgrader's name
    is the id, as in a chapter that was just built, or the text tells which cell it was.
    """
    by_text = {text: name for name, text in as_handed_out(notebook).items()}
    for cell in notebook.cells:
        moved = cell.metadata.pop("id", None)
        if "id" not in cell:
            text = fingerprint(cell.source)
            name = moved or grade_id(cell) or by_text.pop(text, None) or f"own-{text}"
            cell.id = str(name)
    tell_ids_apart(notebook.cells)
    notebook.nbformat_minor = max(notebook.nbformat_minor, FIRST_MINOR_WITH_IDS)
    return notebook


def tell_ids_apart(cells: list[NotebookNode]) -> None:
    """Give a cell whose id another one before it has, or that no notebook may hold, a new id."""
    used: set[str] = set()
    for cell in cells:
        name = known = cell.id if ID.fullmatch(cell.id) else f"own-{fingerprint(cell.id)}"
        again = 1
        while name in used:
            again += 1
            name = f"{known[:LONGEST_ID]}-{again}"
        cell.id = name
        used.add(name)


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


def likes(cell: NotebookNode, notebook: NotebookNode) -> list[NotebookNode]:
    """Return a notebook's cells that stand for a cell of the chapter, in their order.

    These are the marked cells of its name, of which a learner may have made several, and an unmarked one of its id.
    """
    name = grade_id(cell)
    marked = [one for one in notebook.cells if name is not None and grade_id(one) == name]
    return marked + [one for one in notebook.cells if grade_id(one) is None and one.id == cell.id]


def chapter_of(course: Path, exercise: str, chapters: list[str]) -> tuple[str, NotebookNode]:
    """Return the chapter that has an exercise, and the learner's notebook of it.

    A damaged notebook is passed over. An exercise that no notebook has left is looked for in the starters.

    Raises:
        CourseError: no chapter has such an exercise; the sentence offers the nearest names, and names the damaged.
    """
    names: list[str] = []
    damaged: list[str] = []
    readable: dict[str, NotebookNode] = {}
    for chapter in chapters:
        try:
            notebook = readable[chapter] = learner_notebook(chapter_path(course, chapter))
        except CourseError as error:
            damaged.append(str(error))
            continue
        found = exercises_of(notebook)
        if exercise in found:
            return chapter, notebook
        names += sorted(found)
    for chapter, notebook in readable.items():
        if has_starter(course, chapter, exercise):
            return chapter, notebook
    close = difflib.get_close_matches(exercise, names, n=2)
    hint = f"did you mean {' or '.join(close)}?" if close else "`course progress` lists them."
    raise CourseError(" ".join([f"No chapter has an exercise {exercise!r}; {hint}", *damaged]))


def exercises_of(notebook: NotebookNode) -> set[str]:
    """Return the exercises of a notebook's marked cells."""
    return {role[0] for cell in notebook.cells if (role := known_role(cell)) is not None}


def has_starter(course: Path, chapter: str, exercise: str) -> bool:
    """Return whether a chapter has an exercise as it is handed out today."""
    source = source_path(course, chapter)
    if source.is_file() and exercise not in source.read_text(encoding="utf-8"):
        return False  # the starter is made from the source, which takes a while
    try:
        return exercise in exercises_of(pristine_notebook(course, chapter))
    except CourseError:
        return False
