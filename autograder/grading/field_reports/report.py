"""What a report is, and how a submission that shows one is handed in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from autograder.build import answered_notebook
from autograder.grading.results import Status, StudentResult
from autograder.testing.tiny_course import CHAPTER, RIGHT

NOTEBOOK = f"{CHAPTER}.ipynb"
BOTH = 6.0  # the points of two right functions; the written question is a person's
ONE = 3.0
GRADED_TOGETHER = "autograder/grading/field_reports/field_reports_test.py::test_a_reported_submission_is_graded_right"


def leave(_: NotebookNode) -> None:
    """Leave the notebook as it is."""


def lay_nothing(_: Path) -> None:
    """Leave the folder as it is."""


@dataclass(frozen=True)
class HandIn:
    """A submission that shows what was reported.

    Args:
        name: A few words, part of the student's name.
        points: What it is worth.
        status: The submission's status.
        words: What a repair, a warning or a message must say; without it nothing may be repaired or warned of.
        shown: What the graded notebook must show.
        answers: What the student wrote, by `grade_id`.
        damage: Changes the notebook.
        encode: Makes the file's bytes out of its text.
        lay: Changes the folder when the notebook lies in it.
    """

    name: str
    points: float = BOTH
    status: Status = "graded"
    words: str = ""
    shown: str = ""
    answers: dict[str, str] | None = None
    damage: Callable[[NotebookNode], None] = leave
    encode: Callable[[str], bytes] = str.encode
    lay: Callable[[Path], None] = lay_nothing

    def put_into(self, course: Path, student: str) -> None:
        """Hand the notebook in under a student's name."""
        notebook = answered_notebook(course, CHAPTER, RIGHT if self.answers is None else self.answers)
        self.damage(notebook)
        folder = course / "submitted" / student / CHAPTER
        folder.mkdir(parents=True)
        text = json.dumps(notebook, ensure_ascii=False)  # nbformat would mend what is meant to be broken
        (folder / NOTEBOOK).write_bytes(self.encode(text))
        self.lay(folder)


@dataclass(frozen=True)
class Report:
    """One report.

    Args:
        key: Its number in the list, or a letter for what trials have found.
        reported: What went wrong elsewhere.
        here: What happens here.
        hand_ins: Submissions that show it.
        tests: Tests of what no submission can show, as `path::name`.
    """

    key: str
    reported: str
    here: str
    hand_ins: tuple[HandIn, ...] = ()
    tests: tuple[str, ...] = ()

    @property
    def students(self) -> dict[str, HandIn]:
        """Return the submissions by student."""
        return {f"{self.key} {one.name}": one for one in self.hand_ins}

    @property
    def tested_by(self) -> list[str]:
        """Return where it is tested."""
        return [*([GRADED_TOGETHER] if self.hand_ins else []), *self.tests]


def said(result: StudentResult) -> str:
    """Return all that a result tells the student."""
    messages = [exercise.message or "" for exercise in result.exercises.values()]
    return "\n".join([*result.repairs, *result.warnings, *messages])
