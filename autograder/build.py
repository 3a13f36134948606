"""Builds the chapters: sources in `solutions/` become the instructor's and the students' notebooks."""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.authoring.build_check import check_build
from autograder.authoring.chapter_source import read_chapter
from autograder.authoring.instructor import chapter_minutes, chapter_points, instructor_notebook
from autograder.authoring.leaks import leaks
from autograder.authoring.making import make_chapter
from autograder.authoring.manifest import is_ours, keep_copy, record
from autograder.authoring.roles import SOLUTION_MARKS, STARTER_MARKS, BuildError
from autograder.authoring.source_checks import source_problems
from autograder.course_folder import chapter_names, chapter_path, source_notebook_path, source_path

__all__ = [
    "BuildError",
    "BuildResult",
    "answered_notebook",
    "build_all",
    "build_chapter",
    "chapter_names",
    "check_build",
    "model_answers",
    "solved_notebook",
    "starter_notebook",
]


@dataclass(frozen=True)
class BuildResult:
    """What building one chapter did."""

    chapter: str
    path: Path
    written: bool
    kept_copy: Path | None
    exercises: int
    points: int
    minutes: int
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Say what happened to the student's notebook, and what is still wrong with the source."""
        done = "written" if self.written else "already up to date"
        lines = [f"{self.chapter}: {done}."]
        if self.kept_copy is not None:
            lines = [f"{self.chapter}: {done}; your changed notebook is kept as {self.kept_copy}."]
        return "\n".join([*lines, *self.problems])


def build_chapter(source: Path, course: Path) -> BuildResult:
    """Build one chapter into `build/source/` and `chapters/`.

    A notebook in `chapters/` that a person changed is copied beside itself first, and the result says so.
    Faults that do no harm to a student are listed in the result.

    Raises:
        BuildError: the source is malformed, or a secret would reach the student's notebook.
    """
    made = make_chapter(source, course)
    name = made.source.name
    path = chapter_path(course, name)
    leaked = leaks(f"chapters/{name}", nbformat.reads(made.student, as_version=4), made.source)
    if leaked:
        raise BuildError("\n".join(leaked))
    _write(source_notebook_path(course, name), made.instructor)
    stands = path.read_bytes() if path.exists() else None
    fresh = made.student.encode()
    kept = None
    if stands is not None and stands != fresh and not is_ours(course, name, stands):
        kept = keep_copy(path)
    if stands != fresh:
        _write(path, made.student)
    record(course, name, fresh)
    return BuildResult(
        chapter=name,
        path=path,
        written=stands != fresh,
        kept_copy=kept,
        exercises=len(made.source.exercises()),
        points=chapter_points(made.source),
        minutes=chapter_minutes(made.source),
        problems=source_problems(made.source),
    )


def build_all(course: Path, only: str | None = None) -> list[BuildResult]:
    """Build every chapter of a course, or the one that `only` names.

    Raises:
        BuildError: there is no such chapter, or a chapter cannot be built.
    """
    names = chapter_names(course)
    if not names:
        raise BuildError(f"{course / 'solutions'} holds no chapter; a source is called like 01_attention.py.")
    chosen = names if only is None else [_known(course, only)]
    return [build_chapter(source_path(course, name), course) for name in chosen]


def solved_notebook(course: Path, chapter: str) -> NotebookNode:
    """Make the instructor's notebook: answers, hidden tests and model answers in place."""
    return instructor_notebook(read_chapter(source_path(course, _known(course, chapter))))


def starter_notebook(course: Path, chapter: str) -> NotebookNode:
    """Make the notebook that a student is given."""
    made = make_chapter(source_path(course, _known(course, chapter)), course)
    return nbformat.reads(made.student, as_version=4)


def model_answers(course: Path, chapter: str) -> dict[str, str]:
    """Give what a student who knows everything would write, by `grade_id`, without the marks around it."""
    return {
        cell.metadata.nbgrader.grade_id: _without_marks(cell.source)
        for cell in solved_notebook(course, chapter).cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }


def answered_notebook(course: Path, chapter: str, answers: Mapping[str, str] | None = None) -> NotebookNode:
    """Make a submission: the student's notebook with cells answered.

    Args:
        course: The course folder.
        chapter: The chapter's name.
        answers: Source by `grade_id`; cells without one stay as they are. None answers all, rightly.

    Raises:
        BuildError: there is no such chapter, or `answers` names a cell that the chapter lacks.
    """
    notebook = starter_notebook(course, chapter)
    answers = model_answers(course, chapter) if answers is None else answers
    cells = {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if "nbgrader" in cell.metadata}
    for name, text in answers.items():
        if name not in cells:
            raise BuildError(f"{chapter} has no cell {name!r} to answer; it has {', '.join(cells)}.")
        cells[name].source = text
    return notebook


def _without_marks(text: str) -> str:
    lines, inside_starter = [], False
    for line in text.split("\n"):
        inside_starter = inside_starter or STARTER_MARKS[0] in line
        if not inside_starter and not any(mark in line for mark in SOLUTION_MARKS):
            lines.append(line)
        inside_starter = inside_starter and STARTER_MARKS[1] not in line
    return "\n".join(lines)


def _known(course: Path, chapter: str) -> str:
    names = chapter_names(course)
    if chapter not in names:
        near = difflib.get_close_matches(chapter, names, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise BuildError(f"There is no chapter {chapter!r}; the chapters are {', '.join(names) or 'none yet'}.{hint}")
    return chapter


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8", newline="\n")
    os.replace(draft, path)
