"""Write a file whole or not at all, wherever a person wants it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autograder.errors import CourseError


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Give a draft beside the file; it takes the file's place at the end, and is removed after an error.

    Raises:
        CourseError: the path is a folder, or lies in none.
    """
    if path.is_dir():
        raise CourseError(f"--out: {path} is a folder; give the name of the file to write, as {path / 'NAME'}.")
    if not path.parent.is_dir():
        raise CourseError(f"There is no folder {path.parent}; make it, or give another --out.")
    draft = path.with_name(f".{path.name}.draft")
    try:
        yield draft
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
