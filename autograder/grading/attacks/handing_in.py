"""Attacks by what is handed in: test cells, links, pages, and a crash after a good submission."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.build import answered_notebook
from autograder.grading.cells import grade_id
from autograder.grading.results import StudentResult
from autograder.testing.tiny_course import CHAPTER, POINTS, RIGHT

SCRIPT = "<script>fetch('/grades')</script>"
PICTURE = "<img src='x' onerror='fetch(\"/grades\")'>"
LIVE_PICTURE = re.compile("<img[^>&]*onerror")  # with `&lt;` in place of `<` it is only shown
WRONG = {"double": "def double(x):\n    return x - 1", "triple": "def triple(x):\n    return x - 1"}
HALF = WRONG | {"double": RIGHT["double"]}
SECRET_FILE = "grader-only.txt"
MANY_POINTS, FAR_SCHEMA = 100, 99


def leave(notebook: NotebookNode) -> None:
    """Leave the notebook as it is."""


def double_the_tests(notebook: NotebookNode) -> None:
    """Put a copy behind every test."""
    twins = [[cell, copy.deepcopy(cell)] if "test" in str(grade_id(cell)) else [cell] for cell in notebook.cells]
    notebook.cells = [cell for pair in twins for cell in pair]


def raise_the_points(notebook: NotebookNode) -> None:
    """Give every test a hundred points."""
    for cell in notebook.cells:
        if "test" in str(grade_id(cell)):
            cell.metadata.nbgrader["points"] = MANY_POINTS


def come_from_the_future(notebook: NotebookNode) -> None:
    """Say that the marks of the cells have a schema that nobody knows yet."""
    for cell in notebook.cells:
        if grade_id(cell):
            cell.metadata.nbgrader["schema_version"] = FAR_SCHEMA


def delete_the_tests(notebook: NotebookNode) -> None:
    """Take out every test."""
    notebook.cells = [cell for cell in notebook.cells if "test" not in str(grade_id(cell))]


def write_scripts(notebook: NotebookNode) -> None:
    """Put scripts into the text and into an output."""
    notebook.cells.insert(0, new_markdown_cell(f"Hello {SCRIPT} {PICTURE}"))
    show = f"from IPython.display import HTML, display\ndisplay(HTML({SCRIPT + PICTURE!r}))"
    notebook.cells.append(new_code_cell(show))


def link_to_the_grader(folder: Path, secret: Path) -> None:
    """Lay links to the grader's file beside the notebook."""
    (folder / "notes.txt").symlink_to(secret)
    (folder / "data").symlink_to(secret.parent)


@dataclass(frozen=True)
class HandIn:
    """A hostile submission.

    Args:
        row: The catalogue's row.
        name: A few words, also the student's name.
        sketch: What it does, in a sentence.
        stock: What unmodified nbgrader 0.9.6 made of it.
        answers: What the student has solved, by `grade_id`.
        deserved: The points that this is worth.
        damage: Changes the notebook.
        lay: Lays more into the folder; is given a file that only the grader may read.
        before: What the student had handed in, and got graded, before.
    """

    row: str
    name: str
    sketch: str
    stock: str
    answers: dict[str, str]
    deserved: float
    damage: Callable[[NotebookNode], None] = leave
    lay: Callable[[Path, Path], None] | None = None
    before: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return the row with its few words, which is unique."""
        return f"{self.row} {self.name}"


HAND_INS = [
    HandIn(
        "A19",
        "crash after success",
        "After a good submission comes one that ends its own process.",
        "the old points stay",
        {"double": "import os\nos._exit(1)"},
        0,
        before=RIGHT,
    ),
    HandIn(
        "A32",
        "doubled tests",
        "Every test cell is there twice.",
        "the run ends for the whole class",
        HALF,
        3,
        double_the_tests,
    ),
    HandIn(
        "A32",
        "points raised",
        "The marks of the test cells promise a hundred points each.",
        "the run ends for the whole class, or the change is undone",
        HALF,
        3,
        raise_the_points,
    ),
    HandIn(
        "A32",
        "unknown schema",
        "The marks of the cells claim a version that nobody knows.",
        "the run ends for the whole class",
        WRONG,
        0,
        come_from_the_future,
    ),
    HandIn(
        "A33",
        "tests deleted",
        "The test cells that would fail are deleted.",
        "no grade, it waits for a person; after a good submission the old points stay",
        WRONG,
        0,
        delete_the_tests,
        before=RIGHT,
    ),
    HandIn(
        "A36",
        "links",
        "Links beside the notebook lead to the grader's files, which come back with the feedback.",
        "their content is copied",
        HALF,
        3,
        lay=link_to_the_grader,
    ),
    HandIn(
        "A37",
        "scripts",
        "Text and outputs hold scripts, which run where the grader opens the page.",
        "they stay in the page",
        HALF,
        3,
        write_scripts,
    ),
]


def hand_in(course: Path, attack: HandIn, answers: dict[str, str], hostile: bool = True) -> None:
    """Hand in the chapter with these answers, and with what makes it hostile."""
    notebook = answered_notebook(course, CHAPTER, answers)
    if hostile:
        attack.damage(notebook)
    folder = course / "submitted" / attack.key / CHAPTER
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(notebook)  # nbformat would mend what is meant to be broken
    (folder / f"{CHAPTER}.ipynb").write_text(text, encoding="utf-8")
    if hostile and attack.lay is not None:
        attack.lay(folder, course.parent / SECRET_FILE)


def harm_of(course: Path, attack: HandIn, result: StudentResult, secret: str) -> list[str]:
    """Return the harm that a graded submission has done."""
    pages = list((course / "feedback" / attack.key).rglob("*.html"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    written = [path for step in ("autograded", "feedback") for path in (course / step / attack.key).rglob("*")]
    copied = any(path.is_file() and secret.encode() in path.read_bytes() for path in written)
    found = {
        "secret read": copied or secret in text,
        "script in the page": SCRIPT in text or LIVE_PICTURE.search(text) is not None,
        "maximum changed": sum(exercise.maximum for exercise in result.exercises.values()) != sum(POINTS.values()),
    }
    return [name for name, done in found.items() if done]
