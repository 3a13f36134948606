"""Bring an LMS's archive into submitted/STUDENT/CHAPTER/: the latest attempt counts, earlier ones are kept."""

import difflib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from autograder.collecting.archives import opened
from autograder.collecting.give_back import keep_origins
from autograder.collecting.naming import HandIn, hand_ins
from autograder.collecting.roster import Roster, Student, folded, squeezed
from autograder.errors import CourseError

SUBMITTED, EARLIER = "submitted", "submitted_earlier"
TIMESTAMP = "timestamp.txt"
COPY_MARK = re.compile(r"( \(\d+\)|-checkpoint| - Copy)+$")
TIME_FORMAT = "%Y-%m-%d %H:%M:%S %Z"


@dataclass
class Collected:
    """What came of an archive.

    Args:
        students: The ids whose submission is new or newer.
        unchanged: The ids whose submission was there already.
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


def collect(
    course: Path, archive: Path, system: str, roster: Roster | None, chapters: list[str], chapter: str | None = None
) -> Collected:
    """Collect one chapter's submissions; what was collected before stays unless a later attempt replaces it.

    Args:
        course: The course folder.
        archive: The zip file or folder.
        system: Whose archive it is: canvas, moodle, blackboard, gradescope or folder.
        roster: The class; None takes the archive's own words as ids, where those are ids.
        chapters: The course's chapters.
        chapter: Which one was handed in; None finds out by the notebooks' names.

    Raises:
        CourseError: the archive, the roster or the chapter cannot be used; nothing was written.
    """
    if roster is None and system in ("canvas", "moodle", "gradescope"):
        raise CourseError(f"An archive from {system} names people, not ids: give the class with --roster roster.csv.")
    done = Collected()
    with opened(archive) as unpacked:
        done.notes += unpacked.notes
        found, left_out = hand_ins(system, unpacked.files)
        done.notes += left_out
        chapter = chapter or chapter_of(found, chapters)
        attempts = by_student(found, roster, done)
        if not attempts:
            raise CourseError(nobody(archive, done))
        with tempfile.TemporaryDirectory(prefix=".collecting-", dir=course) as folder:
            for student, handed_in in attempts.items():
                lay_out(Path(folder) / student, handed_in, chapter, done)
            for student in attempts:
                take_over(course, Path(folder) / student, student, chapter, done)
    keep_origins(course, chapter, {student: origin for student, own in attempts.items() if (origin := origin_of(own))})
    if roster is not None:
        done.missing = sorted(set(roster.students) - set(attempts))
    return done


def origin_of(attempts: list[Attempt]) -> str:
    """Return the name under which the LMS takes a file back for the latest attempt's notebook."""
    notebooks = [one for name, one in attempts[-1].files.items() if name.endswith(".ipynb")]
    return notebooks[0].origin if notebooks else ""


def chapter_of(found: Iterable[HandIn], chapters: list[str]) -> str:
    """Return the chapter that the notebooks are called after.

    Raises:
        CourseError: they are called after none, or after several.
    """
    stems = {plain_stem(one.file) for one in found if one.file.endswith(".ipynb")}
    named = sorted(set(chapters) & stems)
    if len(named) == 1:
        return named[0]
    why = f"the notebooks are called after {' and '.join(named)}" if named else "no notebook is called after a chapter"
    raise CourseError(f"Which chapter was handed in? Say it with --chapter; {why}. Nothing was collected.")


def plain_stem(name: str) -> str:
    """Return a notebook's name without folder, ending, and a browser's or editor's mark of a copy."""
    return COPY_MARK.sub("", name.rsplit("/", 1)[-1].removesuffix(".ipynb"))


def by_student(found: Iterable[HandIn], roster: Roster | None, done: Collected) -> dict[str, list[Attempt]]:
    """Return each student's attempts, the latest last; list whom the roster does not settle."""
    attempts: dict[str, dict[tuple, Attempt]] = {}
    for one in found:
        student = student_of(one, roster, done)
        if student is not None:
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
    if roster is None:
        return safe_id(one.words[0], done)
    found = whom(one, roster)
    words = one.words[-1]
    if len(found) == 1:
        say_other_letters(one, found[0].id, done)
        return found[0].id
    if found:
        done.ambiguous[words] = sorted(student.id for student in found)
    elif words not in done.unknown:
        done.unknown.append(words)
    return None


def say_other_letters(one: HandIn, student: str, done: Collected) -> None:
    """Note an id that the roster writes with other capital letters."""
    for word in one.words:
        note = f"{word} was taken for {student}, as the roster writes it."
        if word != student and folded(word) == folded(student) and note not in done.notes:
            done.notes.append(note)


def whom(one: HandIn, roster: Roster) -> list[Student]:
    """Return whom the words can mean; Canvas runs a name's letters together."""
    return roster.whom(*one.words) or roster.whom(*(squeezed(word) for word in one.words))


def safe_id(word: str, done: Collected) -> str | None:
    """Return a word as an id, if it can be a folder's name."""
    if folded(word) in ("", ".", "..") or "/" in word or "\\" in word or word.startswith("."):
        done.notes.append(f"{word!r} cannot be a student's id and was left out.")
        return None
    return word


def nobody(archive: Path, done: Collected) -> str:
    """Return why nothing was collected."""
    if done.unknown or done.ambiguous:
        listed = ", ".join([*done.unknown, *done.ambiguous])
        return f"The roster knows nobody of {archive}: {listed}. Nothing was collected."
    return f"{archive} holds no submission that is named as this LMS names them. Nothing was collected."


def lay_out(folder: Path, attempts: list[Attempt], chapter: str, done: Collected) -> None:
    """Write a student's attempts into a folder of their own: the latest as `latest`, earlier ones by number."""
    for number, attempt in enumerate(attempts, start=1):
        place = folder / ("latest" if number == len(attempts) else f"attempt-{number}")
        place.mkdir(parents=True)
        for name, one in renamed(attempt.files, chapter).items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(one.packed.read())
        if attempt.time is not None:
            aware = attempt.time if attempt.time.tzinfo else attempt.time.astimezone()
            (place / TIMESTAMP).write_text(aware.astimezone(UTC).strftime(TIME_FORMAT) + "\n", encoding="utf-8")
        if attempt.late:
            done.notes.append(f"{folder.name} handed in late, says the LMS.")


def renamed(files: dict[str, HandIn], chapter: str) -> dict[str, HandIn]:
    """Return the files with the chapter's notebook under its own name, where one alone can be it."""
    wanted = f"{chapter}.ipynb"
    if wanted in files:
        return files
    notebooks = [name for name in files if name.endswith(".ipynb")]
    like = [name for name in notebooks if plain_stem(name) == chapter] or notebooks
    if len(like) != 1:
        return files
    return {wanted if name == like[0] else name: one for name, one in files.items()}


def take_over(course: Path, laid_out: Path, student: str, chapter: str, done: Collected) -> None:
    """Move a student's attempts into the course; an older submission that differs is kept beside the earlier ones."""
    target = course / SUBMITTED / student / chapter
    kept = course / EARLIER / student / chapter
    latest = laid_out / "latest"
    if target.is_dir() and content_of(target) == content_of(latest):
        done.unchanged.append(student)
    else:
        if target.is_dir():
            move_aside(target, kept)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(latest, target)
        done.students.append(student)
    for attempt in sorted(laid_out.glob("attempt-*")):
        if not any(content_of(old) == content_of(attempt) for old in kept.glob("*")):
            move_aside(attempt, kept)


def move_aside(folder: Path, kept: Path) -> None:
    """Keep a folder under the next free number."""
    kept.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(old.name) for old in kept.iterdir() if old.name.isdecimal()), default=0)
    shutil.move(folder, kept / f"{number:02d}")


def content_of(folder: Path) -> dict[str, str]:
    """Return a fingerprint of every file but the time."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != TIMESTAMP
    }


def nearest(word: str, roster: Roster) -> str:
    """Return a hint at the student whose name is nearest, for a person to decide."""
    known = {folded(student.full_name): student.id for student in roster.students.values()}
    close = difflib.get_close_matches(folded(word), known, n=1)
    return f" (like {known[close[0]]}?)" if close else ""
