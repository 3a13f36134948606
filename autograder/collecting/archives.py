"""Read what somebody packed, and trust nothing in it: names, links, sizes."""

import lzma
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath

from autograder.errors import CourseError

MEGABYTE = 2**20
LARGEST_FILE = 50 * MEGABYTE
LARGEST_WHOLE = 2048 * MEGABYTE
MOST_FILES = 50_000
CLUTTER = re.compile(r"(^|/)(__MACOSX(/|$)|\.DS_Store$|Thumbs\.db$|desktop\.ini$|\._[^/]*$|\.ipynb_checkpoints(/|$))")
# What Python's readers say of bytes that are no zip archive's.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
    ValueError,
)
ENCRYPTED = 0x1  # a bit of a zip entry's flags


@dataclass(frozen=True)
class Packed:
    """One file of an archive or a folder.

    Args:
        name: Its path inside, with forward slashes.
        read: Gives its content; no more than `LARGEST_FILE`.
        time: When the archive says it was changed, in no known time zone.
    """

    name: str
    read: Callable[[], bytes]
    time: datetime | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the folders and the file's name."""
        return PurePosixPath(self.name).parts


@dataclass
class Unpacked:
    """The files of an archive that can be taken, and a sentence about each that cannot."""

    files: list[Packed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@contextmanager
def opened(path: Path) -> Iterator[Unpacked]:
    """Open a zip archive or a folder.

    Raises:
        CourseError: it is neither, is damaged, empty, protected by a password, or far too large.
    """
    if path.is_dir():
        found = of_folder(path)
        check(path, found)
        yield found
        return
    if not path.is_file():
        raise CourseError(f"There is no archive {path}; give the zip file or folder that the LMS made.")
    with open_zip(path) as archive:
        found = of_zip(path, archive)
        check(path, found)
        yield found


def open_zip(path: Path) -> zipfile.ZipFile:
    """Open a zip archive, or say in a sentence why it cannot be."""
    try:
        return zipfile.ZipFile(path)
    except PermissionError:
        raise
    except DAMAGED as error:
        raise CourseError(f"{path} is no zip archive, or is damaged ({error}); download it again.") from error


def check(path: Path, found: Unpacked) -> None:
    """Refuse what holds nothing, or too much."""
    if not found.files:
        raise CourseError(f"{path} holds no file that could be a submission; nothing was collected.")
    if len(found.files) > MOST_FILES:
        raise CourseError(
            f"{path} holds more than {MOST_FILES:,} files; that is no class's archive. Nothing was collected."
        )


def of_zip(path: Path, archive: zipfile.ZipFile) -> Unpacked:
    """List a zip archive; nothing is unpacked yet.

    Raises:
        CourseError: it asks for a password, or would unpack to more than a class can have handed in.
    """
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if any(entry.flag_bits & ENCRYPTED for entry in entries):
        raise CourseError(f"{path} is protected by a password; unpack it yourself and give the folder.")
    whole = sum(entry.file_size for entry in entries)
    if whole > LARGEST_WHOLE:
        raise CourseError(
            f"{path} would unpack to {whole / MEGABYTE:,.0f} MB, more than the {LARGEST_WHOLE // MEGABYTE:,} MB that "
            "are allowed; nothing was collected."
        )
    found = Unpacked()
    for entry in entries:
        link = stat.S_ISLNK(entry.external_attr >> 16)
        if taken(found, entry.filename, link, entry.file_size):
            found.files.append(Packed(clean(entry.filename), zip_reader(archive, entry), time_of(entry)))
    return found


def zip_reader(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[], bytes]:
    """Return what reads one entry; an entry that is longer than it says is cut off with an error."""

    def read() -> bytes:
        try:
            with archive.open(entry) as stream:
                data = stream.read(LARGEST_FILE + 1)
        except NotImplementedError as error:
            raise CourseError(
                f"{entry.filename} is packed in a way that cannot be read here; unpack the archive and give the folder."
            ) from error
        except DAMAGED as error:
            raise CourseError(f"{entry.filename} is damaged in the archive ({error}); download it again.") from error
        if len(data) > LARGEST_FILE:
            raise CourseError(f"{entry.filename} is longer than the archive says; do not trust this archive.")
        return data

    return read


def of_folder(path: Path) -> Unpacked:
    """List a folder's files; links are not followed."""
    found = Unpacked()
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        link = file.is_symlink() or any(parent.is_symlink() for parent in file.parents if parent != path.parent)
        if not link and not file.is_file():
            continue
        if taken(found, name, link, 0 if link else file.stat().st_size):
            found.files.append(Packed(name, file.read_bytes, datetime.fromtimestamp(file.stat().st_mtime)))
    return found


def taken(found: Unpacked, name: str, link: bool, size: int) -> bool:
    """Return whether a file is taken; note in a sentence why not, except for a system's own clutter."""
    if CLUTTER.search(name.replace("\\", "/")):
        return False
    if link:
        found.notes.append(f"{name} is a link and was left out.")
    elif leads_out(name):
        found.notes.append(f"{name!r} leads out of the archive and was left out.")
    elif size > LARGEST_FILE:
        found.notes.append(
            f"{name} has {size / MEGABYTE:,.0f} MB, more than {LARGEST_FILE // MEGABYTE}, and was left out."
        )
    else:
        return True
    return False


def leads_out(name: str) -> bool:
    """Return whether a name is absolute, names a drive, or climbs out by `..`."""
    slashes = name.replace("\\", "/")
    return (
        slashes.startswith("/") or ".." in slashes.split("/") or bool(re.match(r"[A-Za-z]:", slashes)) or "\0" in name
    )


def clean(name: str) -> str:
    """Return a name with forward slashes and without empty parts."""
    return PurePosixPath(name.replace("\\", "/")).as_posix()


def time_of(entry: zipfile.ZipInfo) -> datetime | None:
    """Return the time of an entry, or None where it is none."""
    try:
        return datetime(*entry.date_time)
    except ValueError:
        return None
