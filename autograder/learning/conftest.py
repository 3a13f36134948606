"""What the tests of a learner's commands share: a tiny built course, and hands that answer and correct it."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_output

from autograder.build import build_all
from autograder.course_folder import SOLUTIONS, chapter_path
from autograder.learning.notebooks import by_grade_id, learner_notebook
from autograder.testing.tiny_course import CHAPTER, make_tiny_course


@pytest.fixture(scope="package")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make and build the tiny course once."""
    course = make_tiny_course(tmp_path_factory.mktemp("built") / "course")
    build_all(course)
    return course


@pytest.fixture
def course(built: Path, tmp_path: Path) -> Path:
    """Give a copy of the built course."""
    return Path(shutil.copytree(built, tmp_path / "course"))


def notebook_of(course: Path) -> NotebookNode:
    """Read the learner's notebook."""
    return learner_notebook(chapter_path(course, CHAPTER))


def save(course: Path, notebook: NotebookNode) -> None:
    """Save the learner's notebook as an editor would."""
    nbformat.write(notebook, chapter_path(course, CHAPTER))


def answer(course: Path, name: str, source: str, said: str | None = None) -> None:
    """Put an answer into its cell, and what the check said below it."""
    notebook = notebook_of(course)
    cells = by_grade_id(notebook)
    cells[name].source = source
    if said is not None:
        cells[f"{name}-test"].outputs = [new_output("stream", text=said)]
    save(course, notebook)


def correct(course: Path, old: str, new: str) -> None:
    """Correct the chapter's source."""
    path = course / SOLUTIONS / f"{CHAPTER}.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
