"""Whose each file of an archive is, and which files make one attempt."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from autograder.collecting.naming import HandIn
from autograder.collecting.record import Remembered
from autograder.collecting.roster import Roster, folded, names_a_folder

TIMESTAMP = "timestamp.txt"
COPY_MARK = re.compile(r"( \(\d+\)|-checkpoint| - Copy)+$")


@dataclass
class Collected:
    """What came of an archive.

    Args:
        students: The ids whose submission is new or newer.
        unchanged: The ids whose submission stays as it was.
        unknown: What the archive calls students whom the roster does not have.
        ambiguous: What it calls students that could be several, with their ids.
        missing: Students of the roster of whom the archive has nothing.
        notes: A sentence for everything else that was noticed.
    """

    students: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    ambiguous: dict[str, list[str]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, sentence: str) -> None:
        """Add a sentence once."""
        if sentence not in self.notes:
            self.notes.append(sentence)


@dataclass
class Attempt:
    """One attempt of one student: its files by name, newest last within the student's attempts."""

    order: tuple
    files: dict[str, HandIn] = field(default_factory=dict)

    @property
    def time(self) -> datetime | None:
        """Return when it was handed in, if the archive says so."""
        times = [one.time for one in self.files.values() if one.time is not None]
        return max(times) if times else None

    @property
    def late(self) -> bool:
        """Return whether the LMS marks it late."""
        return any(one.late for one in self.files.values())

    def remembered(self, system: str) -> Remembered:
        """Return what is remembered of it: the notebook's name in the LMS, and its place among the attempts."""
        notebooks = [one for name, one in self.files.items() if name.endswith(".ipynb")]
        origin = notebooks[0].origin if notebooks else ""
        return Remembered(origin, system, max(one.order for one in self.files.values()), self.late)


def by_student(found: Iterable[HandIn], roster: Roster | None, done: Collected) -> dict[str, list[Attempt]]:
    """Return each student's attempts, the latest last; list whom the roster does not settle."""
    attempts: dict[str, dict[tuple, Attempt]] = {}
    for one in found:
        student = student_of(one, roster, done)
        if student is None:
            continue
        if TIMESTAMP in one.file.casefold().split("/"):
            done.note(
                f"{student} handed in a {TIMESTAMP}; it was left out, since a student can write any time into it."
            )
            continue
        attempt = attempts.setdefault(student, {}).setdefault(one.attempt, Attempt(one.attempt))
        attempt.files[one.file] = one
    return {
        student: joined(sorted(own.values(), key=lambda one: one.order)) for student, own in sorted(attempts.items())
    }


def joined(attempts: list[Attempt]) -> list[Attempt]:
    """Put the files of one moment together: an LMS numbers files, a student hands in notebooks."""
    with_notebook: list[Attempt] = []
    waiting: dict[str, HandIn] = {}
    for attempt in attempts:
        if any(name.endswith(".ipynb") for name in attempt.files):
            with_notebook.append(Attempt(attempt.order, waiting | attempt.files))
            waiting = {}
        else:
            waiting |= attempt.files
    if with_notebook:
        with_notebook[-1].files = waiting | with_notebook[-1].files
        return with_notebook
    return [Attempt(attempts[-1].order, waiting)]


def student_of(one: HandIn, roster: Roster | None, done: Collected) -> str | None:
    """Return the id of who handed a file in, or None after listing why it is not known."""
    shown = one.words[-1]
    if roster is None:
        if names_a_folder(shown):
            return shown
        done.note(f"{shown!r} cannot be a student's id and was left out.")
        return None
    found = roster.whom(*one.words, number=one.number)
    if len(found) == 1:
        say_other_letters(one, found[0].id, done)
        return found[0].id
    if found:
        done.ambiguous[shown] = sorted({*done.ambiguous.get(shown, ()), *(student.id for student in found)})
    elif shown not in done.unknown:
        done.unknown.append(shown)
    return None


def say_other_letters(one: HandIn, student: str, done: Collected) -> None:
    """Note an id that the roster writes with other capital letters."""
    for word in one.words:
        if word != student and folded(word) == folded(student):
            done.note(f"{word} was taken for {student}, as the roster writes it.")


def plain_stem(name: str) -> str:
    """Return a notebook's name without folder, ending, and a browser's or editor's mark of a copy."""
    return COPY_MARK.sub("", name.rsplit("/", 1)[-1].removesuffix(".ipynb"))
