"""Remembers which notebooks in `chapters/` are as generated, so that a person's change is never lost."""

import hashlib
import json
import shutil
from datetime import datetime
from pathlib import Path

from autograder.course_folder import CHAPTERS

MANIFEST = ".generated.json"
CHANGED = ".changed-"  # in the name of a kept copy


def is_ours(course: Path, chapter: str, content: bytes) -> bool:
    """Say whether a chapter's notebook is still as the last build left it."""
    return _read(course).get(chapter) == _digest(content)


def record(course: Path, chapter: str, content: bytes) -> None:
    """Remember what a build left in a chapter's notebook."""
    known = _read(course)
    if known.get(chapter) != _digest(content):
        known[chapter] = _digest(content)
        path = course / CHAPTERS / MANIFEST
        path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def keep_copy(path: Path) -> Path:
    """Copy a notebook that a person changed beside itself, under a name with the time in it."""
    moment = datetime.now().strftime("%Y%m%d-%H%M%S")
    copy, again = path.with_name(f"{path.stem}{CHANGED}{moment}{path.suffix}"), 1
    while copy.exists():
        again += 1
        copy = path.with_name(f"{path.stem}{CHANGED}{moment}-{again}{path.suffix}")
    shutil.copy2(path, copy)
    return copy


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read(course: Path) -> dict[str, str]:
    """Read the manifest; one that cannot be read counts as empty, so that every notebook is kept."""
    try:
        known = json.loads((course / CHAPTERS / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
