"""Seeds that differ by student, and keys that say whether a submission must be graded again."""

from __future__ import annotations

import hashlib
import hmac
import os
import platform
import secrets
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from autograder.course_folder import TEST_ROOMS
from autograder.verdict import LARGEST_SEED

SEED_KEY = Path("build") / ".seed-key"
SECRET_BYTES = 32
SHOWN_OF_A_KEY = 16
OWNER_ONLY = 0o600
OUR_PACKAGES = ("autograder", "course_lib")
NO_PART_IN_GRADING = ("authoring", "collecting", "commands", "learning", "reports")  # of autograder's rooms
MAKES_PAGES = (".py", ".j2", ".css")
LIBRARIES = ("torch", "numpy", "nbgrader", "nbformat", "ipykernel", "matplotlib")


def course_secret(course: Path, seed: int | None = None, make: bool = True) -> bytes:
    """Return the secret from which seeds are made; it is drawn on first use and kept in the course's folder.

    Args:
        course: The course's folder.
        seed: A number that takes the secret's place.
        make: Draw a secret where there is none; otherwise it is empty.
    """
    if seed is not None:
        return f"seed {seed}".encode()
    path = course / SEED_KEY
    if not make and not path.is_file():
        return b""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file():
        drawn = path.with_name(f"{path.name}.{os.getpid()}")
        with open(os.open(drawn, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY), "w", encoding="ascii") as file:
            file.write(secrets.token_hex(SECRET_BYTES))
        try:
            os.link(drawn, path)  # of two runs that begin together, one makes the secret
        except FileExistsError:
            pass
        except OSError:
            os.replace(drawn, path)  # a file system without links
        drawn.unlink(missing_ok=True)
    return path.read_bytes()


def seed_for(secret: bytes, student: str, chapter: str, exercise: str, work: str = "") -> int:
    """Return a student's own seed for an exercise: HMAC-SHA256 of the names, below `LARGEST_SEED`.

    Args:
        secret: The course's secret.
        student: Whose seed it is.
        chapter: The chapter's name.
        exercise: The exercise's name.
        work: A key of what was handed in. With it the same work meets the same inputs whenever it is graded, and
            changed work meets new ones, so nobody can write down the answers to inputs that a message named.
    """
    names = [student, chapter, exercise, *([work] if work else [])]
    digest = hmac.new(secret, _joined(names), hashlib.sha256).digest()
    return int.from_bytes(digest) % LARGEST_SEED


def grading_key(*parts: bytes) -> str:
    """Return the SHA-256 of all that a result depends on; parts cannot run into each other."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.hexdigest()


def _joined(names: Iterable[str]) -> bytes:
    return "\0".join(names).encode("utf-8", errors="surrogateescape")


@cache
def environment() -> dict[str, str]:
    """Return the versions of Python and the libraries, and of this course's own code, all that a grade depends on."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2])}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    for package in OUR_PACKAGES:
        spec, parts = find_spec(package), []
        for folder in (spec.submodule_search_locations if spec else None) or ():
            for path in grading_code(Path(folder)):
                parts += [path.relative_to(folder).as_posix().encode(), path.read_bytes()]
        found[package] = grading_key(*parts)[:SHOWN_OF_A_KEY]
    return found


def environment_key() -> str:
    """Return one key of the environment."""
    return grading_key(*(f"{name} {value}".encode() for name, value in environment().items()))


@cache
def pages_key() -> str:
    """Return a key of what makes the feedback pages out of what was graded."""
    package = find_spec("autograder.reports")
    folders = [Path(folder) for folder in (package.submodule_search_locations if package else None) or ()]
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in MAKES_PAGES)
    return grading_key(*(path.read_bytes() for path in files))


def grading_code(package: Path) -> list[Path]:
    """Return the files of a package of ours that can change a grade; what authoring makes is in the notebook."""
    return sorted(
        path
        for path in package.rglob("*.py")
        if not path.name.endswith("_test.py")
        and (parts := path.relative_to(package).parts)[0] not in NO_PART_IN_GRADING
        and not {*parts} & {*TEST_ROOMS}
    )
