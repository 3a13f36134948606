"""Which submissions there are, and what was handed in with each."""

import difflib
import json
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from autograder.errors import CourseError

TIMESTAMP = "timestamp.txt"
LARGEST_NOTEBOOK = 64 * 2**20  # with 50 MB of outputs, which do come, and room to spare
LARGEST_OTHERS = 20 * 2**20
MEGABYTE = 2**20
LEAST_SHARE = 0.5  # of the chapter's marked cells that a notebook of another name must hold


@dataclass(frozen=True)
class Submission:
    """One student's folder for one chapter, and where its results go."""

    student: str
    notebook: Path
    graded: Path
    feedback: Path


@dataclass
class HandedIn:
    """What a student handed in.

    Args:
        data: The notebook; None when there is none that can be taken.
        reason: Why there is none, in a sentence.
        notes: Sentences about what was accepted although it was not as it should be.
        files: The other files by relative path.
        stamp: The content of timestamp.txt.
    """

    data: bytes | None = None
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    stamp: bytes = b""

    @property
    def timestamp(self) -> datetime | None:
        """Return when it was handed in (UTC), or None if that is not known."""
        text = self.stamp.decode("utf-8", errors="replace").strip()
        try:
            return parse_utc(text) if text else None
        except (ValueError, OverflowError):
            return None

    @property
    def parts(self) -> list[bytes]:
        """Return everything that a grade depends on."""
        found = [self.data or b"", self.stamp, json.dumps(self.notes).encode()]
        for name, content in sorted(self.files.items()):
            found += [os.fsencode(name), content]
        return found


def read_submission(submission: Submission, marked: Collection[str]) -> HandedIn:
    """Read a submission's folder; nothing is followed out of it.

    Args:
        submission: Where it lies.
        marked: The chapter's marked cells, which tell its notebook under any name.
    """
    folder, wanted = submission.notebook.parent, submission.notebook
    found = HandedIn()
    stamp = folder / TIMESTAMP
    if is_plain(stamp):
        found.stamp = stamp.read_bytes()
        if found.timestamp is None:
            found.notes.append("The time of handing in is not known: timestamp.txt holds no date.")
    if wanted.is_symlink():
        found.reason = f"{wanted.name} is a link, not a notebook; nothing was read."
        return found
    if not wanted.is_file():
        chosen = notebook_of_another_name(folder, marked)
        if chosen is None:
            found.reason = missing(submission)
            return found
        found.notes.append(f"The notebook was handed in as {chosen.name}; it was graded as {wanted.name}.")
        wanted = chosen
    size = wanted.stat().st_size
    if size > LARGEST_NOTEBOOK:
        found.reason = f"{wanted.name} has {size / MEGABYTE:.0f} MB; at most {LARGEST_NOTEBOOK // MEGABYTE} are read."
        return found
    found.data = wanted.read_bytes()
    found.files, left_out = other_files(folder)
    if left_out:
        found.notes.append(f"Files beyond {LARGEST_OTHERS // MEGABYTE} MB, and links, were left out: {left_out}.")
    others = sorted(path.name for path in folder.glob("*.ipynb") if path != wanted and not path.name.startswith("."))
    if others:
        found.notes.append(f"Other notebooks in the folder were not graded: {', '.join(others)}.")
    return found


def is_plain(path: Path) -> bool:
    """Return whether a path is a file itself and no link to one."""
    return path.is_file() and not path.is_symlink()


def missing(submission: Submission) -> str:
    """Say that there is no notebook, and what there is instead."""
    others = sorted(path.name for path in submission.notebook.parent.glob("*.ipynb"))
    there = f"found only {', '.join(others)}" if others else "there is no notebook in the folder"
    return f"{submission.notebook.name} was not handed in: {there}."


def notebook_of_another_name(folder: Path, marked: Collection[str]) -> Path | None:
    """Return the one notebook that holds most of the chapter's marked cells, if there is just one."""
    if not marked:
        return None
    fitting = []
    for path in sorted(folder.glob("*.ipynb")):
        if is_plain(path) and path.stat().st_size <= LARGEST_NOTEBOOK:
            text = path.read_bytes()
            held = sum(json.dumps(name).encode() in text for name in marked)
            fitting += [path] if held >= LEAST_SHARE * len(marked) else []
    return fitting[0] if len(fitting) == 1 else None


def other_files(folder: Path) -> tuple[dict[str, bytes], str]:
    """Return what lies beside the notebook, and the names of what was left out."""
    files: dict[str, bytes] = {}
    left_out: list[str] = []
    room = LARGEST_OTHERS
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        for name in sorted(names):
            path = Path(place, name)
            if name.startswith(".") or name == TIMESTAMP or name.endswith(".ipynb"):
                continue
            if not is_plain(path) or path.stat().st_size > room:
                left_out.append(name)
                continue
            room -= path.stat().st_size
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files, ", ".join(left_out)


def find_submissions(submitted: Path, graded: Path, feedback: Path, chapter: str) -> list[Submission]:
    """Return everybody's submission of the chapter, by student.

    Raises:
        CourseError: there is none; the sentence says where nbgrader's layout wants them.
    """
    wanted = f"{submitted}/STUDENT/{chapter}/{chapter}.ipynb"
    if (submitted / chapter).is_dir():
        raise CourseError(f"{submitted / chapter}: student and chapter are swapped; a submission belongs at {wanted}.")
    folders = sorted(folder.parent for folder in submitted.glob(f"*/{chapter}") if folder.is_dir())
    if not folders:
        raise CourseError(f"There is no submission of {chapter} yet; put each one at {wanted}.")
    name = f"{chapter}.ipynb"
    return [
        Submission(
            student=folder.name,
            notebook=folder / chapter / name,
            graded=graded / folder.name / chapter / name,
            feedback=feedback / folder.name / chapter,
        )
        for folder in folders
    ]


def only_student(submissions: list[Submission], student: str | None) -> list[Submission]:
    """Return the one student's submission, or all of them for None.

    Raises:
        CourseError: this student handed nothing in.
    """
    if student is None:
        return submissions
    chosen = [submission for submission in submissions if submission.student == student]
    if chosen:
        return chosen
    names = [submission.student for submission in submissions]
    close = difflib.get_close_matches(student, names, n=1)
    hint = f"; did you mean {close[0]}?" if close else f"; there are: {', '.join(names)}."
    raise CourseError(f"Nothing was handed in by the student {student!r}{hint}")
