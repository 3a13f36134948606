"""Pack the course for learners: chapters, course_lib, the checks and the set-up, without answers and tests."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

from autograder.authoring.release import write_notebook
from autograder.build import starter_notebook
from autograder.collecting.whole import draft_of
from autograder.course_folder import CHAPTERS, CONFIG_NAME, STARTERS, TEST_ROOMS, chapter_path
from autograder.errors import CourseError

TOP = "inside-a-transformer-block"  # the folder in the archive
SET_UP = ("pyproject.toml", "constraints.txt", "Makefile", "LICENSE", CONFIG_NAME)
PACKAGES = ("course_lib", "autograder")
FIXED_TIME = (2020, 1, 1, 0, 0, 0)  # the same course makes the same archive
READABLE, EXECUTABLE = 0o644, 0o755
WELCOME = """# Inside a Transformer Block

You need Python 3.11 or newer and make.

    make lab

sets up a virtual environment and opens JupyterLab. Without make:

    python3 -m venv .venv
    .venv/bin/pip install -c constraints.txt -e .
    .venv/bin/course lab

On Windows write `.venv\\Scripts\\` for `.venv/bin/`. Begin with `chapters/00_start_here`, if it is there, or with the
first chapter. `course doctor` looks at your machine, `course progress` at your notebooks.
"""


def pack_bundle(course: Path, chapters: list[str], out: Path) -> int:
    """Write a learner's archive with some chapters; return how many files it has.

    Raises:
        CourseError: there is no folder to write to, or the course lacks its code or set-up.
    """
    with draft_of(out) as draft:
        files = dict(bundle_files(course, chapters))
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(files):
                add(archive, f"{TOP}/{name}", files[name])
    return len(files)


def bundle_files(course: Path, chapters: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of everything that a learner gets."""
    yield "README.md", WELCOME.encode()
    yield from engine_files(course)
    for chapter in chapters:
        text = write_notebook(starter_notebook(course, chapter)).encode()
        yield chapter_path(Path(), chapter).as_posix(), text
        yield f"{CHAPTERS}/{STARTERS}/{chapter}.ipynb", text


def engine_files(course: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the set-up and the packages, without their tests.

    Raises:
        CourseError: the course has them not.
    """
    lacking = [name for name in (*SET_UP, *PACKAGES) if not (course / name).exists()]
    if lacking:
        raise CourseError(
            f"{course} has no {', '.join(lacking)}, which belong in the archive; run it in a whole course."
        )
    for name in SET_UP:
        yield name, (course / name).read_bytes()
    for package in PACKAGES:
        yield from package_files(course, package)


def package_files(course: Path, package: str) -> Iterator[tuple[str, bytes]]:
    """Yield a package's files without its tests."""
    for path in sorted((course / package).rglob("*")):
        inside = path.relative_to(course)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in inside.parts)
        test = path.stem.endswith("_test") or path.name == "conftest.py" or {*inside.parts} & {*TEST_ROOMS}
        if path.is_file() and not hidden and not test:
            yield inside.as_posix(), path.read_bytes()


def add(archive: zipfile.ZipFile, name: str, content: bytes, mode: int = READABLE) -> None:
    """Add one file with a fixed time."""
    entry = zipfile.ZipInfo(name, FIXED_TIME)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, mode << 16
    archive.writestr(entry, content)
