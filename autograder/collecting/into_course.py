"""Lay attempts out beside the course, then move them in: the latest stands, all others are kept."""

import errno
import hashlib
import os
import shutil
from datetime import UTC
from pathlib import Path

from autograder.collecting.attempts import TIMESTAMP, Attempt, Collected, plain_stem
from autograder.collecting.naming import HandIn

SUBMITTED, EARLIER = "submitted", "submitted_earlier"
TIME_FORMAT = "%Y-%m-%d %H:%M:%S %Z"
SHOWN = 60  # characters of a name that cannot be a file's
# What a file system answers to a name that it does not take, or that is a file here and a folder there.
NO_SUCH_NAMES = {
    errno.ENAMETOOLONG,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EINVAL,
    errno.EILSEQ,
}


def lay_out(folder: Path, attempts: list[Attempt], chapter: str, done: Collected) -> None:
    """Write a student's attempts into a folder of their own: the latest as `latest`, earlier ones by number."""
    for number, attempt in enumerate(attempts, start=1):
        place = folder / ("latest" if number == len(attempts) else f"attempt-{number}")
        place.mkdir(parents=True)
        files = renamed(attempt.files, chapter)
        for name, one in sorted(files.items(), key=lambda item: item[0] != f"{chapter}.ipynb"):  # the notebook first
            content = one.packed.read()
            try:
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_bytes(content)
            except OSError as error:
                if error.errno not in NO_SUCH_NAMES:
                    raise
                shown = name if len(name) <= SHOWN else f"{name[:SHOWN]}..."
                done.note(f"{folder.name}: {shown} cannot be kept under this name and was left out ({error.strerror}).")
        if attempt.time is not None:
            aware = attempt.time if attempt.time.tzinfo else attempt.time.astimezone()
            (place / TIMESTAMP).write_text(aware.astimezone(UTC).strftime(TIME_FORMAT) + "\n", encoding="utf-8")
    if attempts[-1].late:
        policy = "" if attempts[-1].time else "; its archive holds no time, so the late policy takes nothing off"
        done.note(f"{folder.name} handed in late, says the LMS{policy}.")


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


def take_over(course: Path, laid_out: Path, chapter: str, older: bool, done: Collected) -> None:
    """Move a student's attempts into the course; what does not stand, and differs, is kept with the earlier ones.

    Args:
        course: The course folder.
        laid_out: The attempts, in a folder of the student's name.
        chapter: The chapter.
        older: Whether an attempt after these was collected before; it stands.
        done: What is told.
    """
    student = laid_out.name
    target, kept = (course / folder / student / chapter for folder in (SUBMITTED, EARLIER))
    latest = laid_out / "latest"
    aside = sorted(laid_out.glob("attempt-*"))
    if target.is_dir() and content_of(target) == content_of(latest):
        done.unchanged.append(student)
    elif target.is_dir() and older:
        done.note(f"{student}: this attempt is older than the one collected before; it went to {EARLIER}/.")
        done.unchanged.append(student)
        aside.append(latest)
    else:
        if target.is_dir():
            move_aside(target, kept)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(latest, target)
        done.students.append(student)
    for attempt in aside:
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
