"""How each LMS names what it packs: whose a file is, which attempt, whether late, and when."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import yaml

from autograder.collecting.archives import Packed
from autograder.errors import CourseError

SYSTEMS = ("canvas", "moodle", "blackboard", "gradescope", "folder")
CANVAS = re.compile(r"(?P<name>[^_/]+)_(?P<late>LATE_)?(?P<user>\d+)_\d+_(?P<file>.+)")
CANVAS_ATTEMPT = re.compile(r"(?P<stem>.+)-(?P<attempt>\d+)\.ipynb")
MOODLE = re.compile(r"(?P<name>.+?)_(?P<user>\d+)_assignsubmission_[a-z]+(_(?P<file>.*))?")
BLACKBOARD = re.compile(
    r"(?P<assignment>.+)_(?P<user>[^_]+)_attempt_(?P<time>\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d)(_(?P<file>.+)|(?P<note>\.txt))"
)
GRADESCOPE = re.compile(r"submission_(?P<submission>\d+)")
GRADESCOPE_LIST = "submission_metadata.yml"
BLACKBOARD_TIME = "%Y-%m-%d-%H-%M-%S"


@dataclass(frozen=True)
class HandIn:
    """One file of one attempt.

    Args:
        words: What the archive calls the student, the surest first.
        file: The file's path as it was handed in.
        packed: The file.
        attempt: Orders a student's attempts; a later one is larger.
        time: When it was handed in, where the archive says so.
        late: Whether the LMS marks it late.
        origin: The name, without ending, under which the LMS takes a file back; empty where it takes none.
    """

    words: tuple[str, ...]
    file: str
    packed: Packed
    attempt: tuple[Any, ...] = ()
    time: datetime | None = None
    late: bool = False
    origin: str = ""


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
        yield HandIn((match["user"], match["name"]), file, one, (number,), late=bool(match["late"]), origin=origin)


def moodle(files: list[Packed]) -> Iterable[HandIn | str]:
    """Read folders such as `Jane Doe_123_assignsubmission_file_/chapter.ipynb`, or the same in one flat name."""
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
            yield HandIn((match["user"], match["name"]), "/".join(below), one, origin=f"{folder}/feedback")


def blackboard(files: list[Packed]) -> Iterable[HandIn | str]:
    """Read names such as `Week 1_jdoe_attempt_2026-01-31-22-10-05_chapter.ipynb`; its .txt notes are no files."""
    for one in files:
        match = BLACKBOARD.fullmatch(one.parts[-1])
        if match is None:
            yield f"{one.name} is not named as Blackboard names submissions and was left out."
        elif match["note"] is None:
            time = datetime.strptime(match["time"], BLACKBOARD_TIME)
            yield HandIn((match["user"],), match["file"], one, (time,), time)


def gradescope(files: list[Packed]) -> Iterable[HandIn | str]:
    """Read folders such as `submission_123/`, whose students stand in submission_metadata.yml."""
    lists = [one for one in files if one.parts[-1] == GRADESCOPE_LIST]
    if not lists:
        raise CourseError(f"The archive has no {GRADESCOPE_LIST}; export the submissions from Gradescope once more.")
    try:
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
        time, late = gradescope_time(about), bool(about.get("lateness") or about.get(":lateness"))
        for words in gradescope_students(about):
            yield HandIn(words, file, one, (str(time),), time, late)


def gradescope_students(about: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    """Yield what names each student of a submission; a group's work counts for all of it."""
    for student in about.get(":submitters", about.get("submitters", [])):
        fields = {str(key).lstrip(":"): str(value or "") for key, value in dict(student).items()}
        yield tuple(filter(None, (fields.get("sid", ""), fields.get("email", ""), fields.get("name", ""))))


def gradescope_time(about: Mapping[str, Any]) -> datetime | None:
    """Return when a submission was made."""
    value = about.get(":created_at", about.get("created_at"))
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(str(value).replace(" UTC", "+00:00"))
    except ValueError:
        return None


class SymbolsAsText(yaml.SafeLoader):
    """A YAML reader that makes nothing but plain values, and takes Ruby's symbols as text."""


def folder(files: list[Packed]) -> Iterable[HandIn | str]:
    """Read STUDENT/… or STUDENT.ipynb; a folder around all of it does not matter."""
    shared = {one.parts[0] for one in files}
    if len(shared) == 1 and all(len(one.parts) > 2 for one in files):
        files = [replace(one, name="/".join(one.parts[1:])) for one in files]
    for one in files:
        if len(one.parts) > 1:
            yield HandIn((one.parts[0],), "/".join(one.parts[1:]), one)
        elif one.name.endswith(".ipynb"):
            yield HandIn((one.name.removesuffix(".ipynb"),), one.name, one)
        else:
            yield f"{one.name} lies in no student's folder and was left out."
