"""How each LMS names what it packs: whose a file is, which attempt, whether late, and when."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import yaml

from autograder.collecting.archives import Packed
from autograder.errors import CourseError

SYSTEMS = ("canvas", "moodle", "blackboard", "gradescope", "folder")
CANVAS = re.compile(r"(?P<name>[^_/]+)_(?P<late>LATE_)?(?P<user>\d+)_(?P<attachment>\d+)_(?P<file>.+)")
CANVAS_ATTEMPT = re.compile(r"(?P<stem>.+)-(?P<attempt>\d{1,9})\.ipynb")
MOODLE = re.compile(r"(?P<name>.+?)_(?P<user>\d+)_assignsubmission_[a-z]+(_(?P<file>.*))?")
# The first mark of an attempt is Blackboard's own; what follows it is the student's file, whatever that is called.
BLACKBOARD = re.compile(
    r"(?P<head>.+?)_attempt_(?P<time>\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d)(_(?P<file>.+)|(?P<note>\.txt))"
)
LONGEST_NUMBER = 20  # digits of a 64-bit number
GRADESCOPE = re.compile(r"submission_(?P<submission>\d+)")
GRADESCOPE_LIST = "submission_metadata.yml"
NO_TIME = (ValueError, OverflowError, OSError)  # what Python says of a time that is none, or that no clock shows
BLACKBOARD_TIME = "%Y-%m-%d-%H-%M-%S"


@dataclass(frozen=True)
class HandIn:
    """One file of one attempt.

    Args:
        words: What the archive calls the student; the last is shown where nobody is found.
        file: The file's path as it was handed in.
        packed: The file.
        attempt: Orders a student's attempts; a later one is larger.
        time: When it was handed in, where the archive says so.
        late: Whether the LMS marks it late.
        origin: The name, without ending, under which the LMS takes a file back; empty where it takes none.
        number: The student's number in the LMS, where the archive has it.
        order: Orders a student's attempts over several archives of one LMS; empty where they cannot be ordered.
    """

    words: tuple[str, ...]
    file: str
    packed: Packed
    attempt: tuple[Any, ...] = ()
    time: datetime | None = None
    late: bool = False
    origin: str = ""
    number: str = ""
    order: str = ""


def hand_ins(system: str, files: Iterable[Packed]) -> tuple[list[HandIn], list[str]]:
    """Return what was handed in, and a sentence about each file whose name says nothing.

    Raises:
        CourseError: the system is not known, or its list of submissions is missing or damaged.
    """
    files = list(files)
    readers: Mapping[str, Callable[[list[Packed]], Iterable[HandIn | str]]] = {
        "canvas": canvas,
        "moodle": moodle,
        "blackboard": blackboard,
        "gradescope": gradescope,
        "folder": folder,
    }
    if system not in readers:
        raise CourseError(f"--from {system}: choose one of {', '.join(SYSTEMS)}.")
    found = list(readers[system](files))
    return [one for one in found if isinstance(one, HandIn)], [one for one in found if isinstance(one, str)]


def canvas(files: list[Packed]) -> Iterable[HandIn | str]:
    """Read names such as `doejane_LATE_123_456_chapter-2.ipynb`: name, late, user, attachment, file, attempt."""
    for one in files:
        match = CANVAS.fullmatch(one.parts[-1])
        if match is None:
            yield f"{one.name} is not named as Canvas names submissions and was left out."
            continue
        file, number = match["file"], 0
        again = CANVAS_ATTEMPT.fullmatch(file)
        if again is not None:
            file, number = f"{again['stem']}.ipynb", int(again["attempt"])
        origin = one.parts[-1].removesuffix(".ipynb")
        late, order = bool(match["late"]), match["attachment"].zfill(LONGEST_NUMBER)  # attachments are counted up
        yield HandIn((match["name"],), file, one, (number,), None, late, origin, match["user"], order)


def moodle(files: list[Packed]) -> Iterable[HandIn | str]:
    """Read folders such as `Jane Doe_123_assignsubmission_file_/chapter.ipynb`, or the same in one flat name.

    The number is the participant's in this one assignment, so it says nothing to a roster.
    """
    for one in files:
        place = next((at for at, part in enumerate(one.parts) if MOODLE.fullmatch(part)), None)
        match = None if place is None else MOODLE.fullmatch(one.parts[place])
        if place is None or match is None:
            yield f"{one.name} is not named as Moodle names submissions and was left out."
            continue
        below = [part for part in (match["file"], *one.parts[place + 1 :]) if part]
        if below:
            flat = match["file"] or ""
            folder = one.parts[place].removesuffix(flat).rstrip("_") + "_"
            yield HandIn((match["name"],), "/".join(below), one, origin=f"{folder}/feedback")


def blackboard(files: list[Packed]) -> Iterable[HandIn | str]:
    """Read names such as `Week 1_jdoe_attempt_2026-01-31-22-10-05_chapter.ipynb`; its .txt notes are no files."""
    for one in files:
        match = BLACKBOARD.fullmatch(one.parts[-1])
        if match is None:
            yield f"{one.name} is not named as Blackboard names submissions and was left out."
        elif match["note"] is None:
            try:
                time = datetime.strptime(match["time"], BLACKBOARD_TIME)
                order = comparable(time)
            except NO_TIME:
                yield f"{one.name} was left out: {match['time']} is no date."
                continue
            yield HandIn(user_names(match["head"]), match["file"], one, (time,), time, order=order)


def user_names(head: str) -> tuple[str, ...]:
    """Return whom `Week 1_j_doe` can mean: j_doe, or doe; the roster decides."""
    parts = head.split("_")
    return tuple("_".join(parts[start:]) for start in range(min(1, len(parts) - 1), len(parts)))


def comparable(time: datetime | None) -> str:
    """Return a time as text that sorts as times do; a time without a zone is this machine's."""
    return "" if time is None else time.astimezone(UTC).isoformat(timespec="microseconds")


def gradescope(files: list[Packed]) -> Iterable[HandIn | str]:
    """Read folders such as `submission_123/`, whose students stand in submission_metadata.yml."""
    lists = [one for one in files if one.parts[-1] == GRADESCOPE_LIST and not any(map(GRADESCOPE.fullmatch, one.parts))]
    if not lists:
        raise CourseError(f"The archive has no {GRADESCOPE_LIST}; export the submissions from Gradescope once more.")
    try:
        lists = sorted(lists, key=lambda one: len(one.parts))[:1]
        listed = yaml.load(lists[0].read().decode("utf-8"), Loader=SymbolsAsText)
        known = {str(key): value for key, value in dict(listed).items()}
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise CourseError(
            f"{GRADESCOPE_LIST} cannot be read; export the submissions from Gradescope once more."
        ) from error
    for one in files:
        if one in lists:
            continue
        place = next(
            (at for at, part in enumerate(one.parts[:-1]) if part in known and GRADESCOPE.fullmatch(part)), None
        )
        if place is None:
            yield f"{one.name} belongs to no submission in {GRADESCOPE_LIST} and was left out."
            continue
        about, file = known[one.parts[place]], "/".join(one.parts[place + 1 :])
        students = list(gradescope_students(about))
        if not students:
            yield f"{one.name} was left out: {GRADESCOPE_LIST} names nobody for it."
            continue
        time = gradescope_time(about)
        for words in students:
            yield HandIn(words, file, one, (comparable(time),), time, gradescope_late(about), order=comparable(time))


def told_of(about: Any, field: str) -> Any:
    """Return a field of the list, whose names are Ruby's symbols or plain; None where there is none."""
    return about.get(f":{field}", about.get(field)) if isinstance(about, Mapping) else None


def gradescope_students(about: Any) -> Iterable[tuple[str, ...]]:
    """Yield what names each student of a submission; a group's work counts for all of it."""
    listed = told_of(about, "submitters")
    for student in listed if isinstance(listed, list) else []:
        words = tuple(str(value) for key in ("sid", "email", "name") if (value := told_of(student, key)))
        if words:
            yield words


def gradescope_late(about: Any) -> bool:
    """Return whether the list tells a time by which a submission was late: yes, 3600, or 01:00:00, but not 00:00:00."""
    lateness = told_of(about, "lateness")
    return lateness is True or any(digit in str(lateness) for digit in "123456789")


def gradescope_time(about: Any) -> datetime | None:
    """Return when a submission was made."""
    value = told_of(about, "created_at")
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).replace(" UTC", "+00:00"))
        return time.astimezone(UTC)
    except NO_TIME:
        return None


class SymbolsAsText(yaml.SafeLoader):
    """A YAML reader that makes nothing but plain values, and takes Ruby's symbols as text."""


def folder(files: list[Packed]) -> Iterable[HandIn | str]:
    """Read STUDENT/… or STUDENT.ipynb; a folder around all of it does not matter, unless a student is called so."""
    shared = {one.parts[0] for one in files}
    around: tuple[str, ...] = ()
    if len(shared) == 1 and all(len(one.parts) > 2 for one in files):
        around = tuple(shared)
        files = [replace(one, name="/".join(one.parts[1:])) for one in files]
    for one in files:
        if len(one.parts) > 1:
            yield HandIn((*around, one.parts[0]), "/".join(one.parts[1:]), one)
        elif one.name.endswith(".ipynb"):
            yield HandIn((one.name.removesuffix(".ipynb"),), one.name, one)
        else:
            yield f"{one.name} lies in no student's folder and was left out."
