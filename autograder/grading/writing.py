"""Write files so that a kill or a full disk leaves the old content or the new one, never half of either."""

import contextlib
import errno
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from autograder.errors import CourseError

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
NO_MEANS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
NEVER = {errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}


def put(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file in one step: a reader, or a run after a kill, never meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    unfinished.unlink(missing_ok=True)
    try:
        with unfinished.open("wb", buffering=0) as file:
            write(file, content)
        if mode is not None:
            unfinished.chmod(mode)
        os.replace(unfinished, path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def append(path: Path, lines: str) -> None:
    """Add whole lines to a file; what was cut short by a kill before gets its end of line first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            lines = lines if file.read(1) == b"\n" else "\n" + lines
        try:
            write(file, lines.encode("utf-8"))
        except OSError:
            os.truncate(path, size)
            raise


def lines_of(path: Path) -> list[str]:
    """Return what `append` wrote, line by line; a kill may have cut the last one anywhere, inside a letter too."""
    return path.read_text(encoding="utf-8", errors="replace").split("\n")


def write(file: FileIO, content: bytes) -> None:
    """Write all of the content; without a buffer, so that want of room shows here and not at the file's end."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def no_room(error: BaseException) -> bool:
    """Return whether a file could not be written for want of room."""
    return getattr(error, "errno", None) in NO_ROOM


def no_means(error: BaseException) -> bool:
    """Return whether this system has no memory or open files left to give, whatever the error's class."""
    return getattr(error, "errno", None) in NO_MEANS


@contextlib.contextmanager
def in_a_sentence() -> Iterator[None]:
    """Turn the error of a file that cannot be written or read, or of a system without means, into one sentence.

    Raises:
        CourseError: In place of such an error.
    """
    try:
        yield
    except Exception as error:
        if no_means(error):
            what = os.strerror(getattr(error, "errno", 0))
            raise CourseError(
                f"This system has nothing left to give ({what}); end other programs or take fewer "
                "--workers, and run it again: it goes on from there."
            ) from error
        if not isinstance(error, OSError):
            raise
        where = f" while {error.filename} was written" if error.filename else ""
        if no_room(error):
            raise CourseError(f"The disk is full{where}; make room and run it again: it goes on from there.") from error
        if error.errno in NEVER:
            raise CourseError(f"{error.filename or 'A file'} cannot be used: {error.strerror}.") from error
        raise
