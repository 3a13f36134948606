"""Bring an LMS's archive into submitted/STUDENT/CHAPTER/: the latest attempt counts, earlier ones are kept."""

import difflib
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from autograder.collecting.archives import opened
from autograder.collecting.attempts import Collected, by_student, plain_stem
from autograder.collecting.into_course import SUBMITTED, lay_out, take_over
from autograder.collecting.naming import HandIn, hand_ins
from autograder.collecting.record import Remembered, recall, remember
from autograder.collecting.roster import Roster, folded
from autograder.errors import CourseError


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
        if not found:
            raise CourseError(nobody(archive, done))
        chapter = chapter or chapter_of(found, chapters)
        attempts = by_student(found, roster, done)
        if not attempts:
            raise CourseError(nobody(archive, done))
        with tempfile.TemporaryDirectory(prefix=".collecting-", dir=course) as folder:
            for student, handed_in in attempts.items():
                lay_out(Path(folder) / student, handed_in, chapter, done)
            newer = newer_ones(
                course, chapter, {student: own[-1].remembered(system) for student, own in attempts.items()}
            )
            for student in attempts:
                take_over(course, Path(folder) / student, chapter, student not in newer, done)
    remember(course, chapter, newer)
    if roster is not None:
        done.missing = sorted(set(roster.students) - set(attempts))
    return done


def newer_ones(course: Path, chapter: str, told: dict[str, Remembered]) -> dict[str, Remembered]:
    """Return what is to be remembered: all but attempts that surely precede the one that was collected before."""
    known = recall(course, chapter)
    newer = {}
    for student, one in told.items():
        before = known.get(student, Remembered())
        if not one.precedes(before) or not (course / SUBMITTED / student / chapter).is_dir():
            newer[student] = replace(one, origin=one.origin or before.origin)
    return newer


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


def nobody(archive: Path, done: Collected) -> str:
    """Return why nothing was collected."""
    if not done.unknown and not done.ambiguous:
        why = f" ({done.notes[0].rstrip('.')})" if done.notes else ""
        return f"{archive} holds no submission that is named and listed as this LMS does{why}. Nothing was collected."
    reasons = [f"{word} can be {' or '.join(ids)}" for word, ids in done.ambiguous.items()]
    if done.unknown:
        reasons.append(f"it does not know {', '.join(done.unknown)}")
    return f"The roster settles nobody of {archive}: {'; '.join(reasons)}. Nothing was collected."


def nearest(word: str, roster: Roster) -> str:
    """Return a hint at the student whose name is nearest, for a person to decide."""
    known = {folded(student.full_name): student.id for student in roster.students.values()}
    close = difflib.get_close_matches(folded(word), known, n=1)
    return f" (like {known[close[0]]}?)" if close else ""
