"""Pack files as an LMS packs them and collect them into a small course, for tests."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

from autograder.collecting.collect import Collected, collect
from autograder.collecting.roster import read_roster

CHAPTER = "01_tiny"
NOTEBOOK = f"{CHAPTER}.ipynb"
ROSTER = """id,first_name,last_name,email,lms_user_id
ada1,Ada,Lovelace,ada@uni.example,101
ben1,Ben,Müller,ben@uni.example,102
dup1,Chris,Doe,chris.a@uni.example,103
dup2,Chris,Doe,chris.b@uni.example,104
"""


def packed(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write a zip archive, and give its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def take(course: Path, system: str, files: dict[str, str | bytes], chapter: str | None = None) -> Collected:
    """Collect an archive of these files with the course's roster."""
    archive = packed(course.parent / f"{system}.zip", files)
    return collect(course, archive, system, read_roster(course / "roster.csv"), [CHAPTER, "02_b"], chapter)


def text(course: Path, student: str, folder: str = "submitted", number: str = "") -> str:
    """Read what a student handed in."""
    return (course / folder / student / CHAPTER / number / NOTEBOOK).read_text()


def by_moodle(*names: str) -> dict[str, str | bytes]:
    """Return what Moodle packs when these people have handed in."""
    return {f"{name}_1_assignsubmission_file_/{NOTEBOOK}": "x" for name in names}


def stamp(course: Path, student: str) -> str:
    """Read when a student handed in."""
    return (course / "submitted" / student / CHAPTER / "timestamp.txt").read_text()


def collected(course: Path, handed_in: Path) -> Collected:
    """Collect a folder of folders, or an archive of them, without a roster."""
    return collect(course, handed_in, "folder", None, [CHAPTER])


def everything(folder: Path) -> set[str]:
    """Return the names of all files below a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
