"""Pack a chapter's feedback pages for an LMS, under the names that it gave the submissions."""

import json
import os
import zipfile
from pathlib import Path

from autograder.errors import CourseError

ORIGINS = ".collected.json"
FIXED_TIME = (2020, 1, 1, 0, 0, 0)  # the same pages make the same archive


def origins_path(course: Path, chapter: str) -> Path:
    """Return where the names of a collected archive are kept."""
    return course / "results" / f".{chapter}{ORIGINS}"


def keep_origins(course: Path, chapter: str, origins: dict[str, str]) -> None:
    """Remember under which name each student's submission came."""
    path = origins_path(course, chapter)
    path.parent.mkdir(exist_ok=True)
    known = read_origins(course, chapter) | origins
    path.write_text(json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def read_origins(course: Path, chapter: str) -> dict[str, str]:
    """Return under which name each student's submission came; nothing where no archive was collected."""
    try:
        known = json.loads(origins_path(course, chapter).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def pack_feedback(course: Path, chapter: str, out: Path | None = None) -> tuple[Path, int, list[str]]:
    """Write one zip archive with everybody's page; return it, how many there are, and who has none.

    Raises:
        CourseError: there is no page at all.
    """
    pages = {
        folder.name: page
        for folder in sorted((course / "feedback").glob("*"))
        if (page := folder / chapter / f"{chapter}.html").is_file()
    }
    if not pages:
        raise CourseError(f"There is no feedback page of {chapter} yet; `course grade {chapter}` writes them.")
    handed_in = {folder.parent.name for folder in (course / "submitted").glob(f"*/{chapter}")}
    origins = read_origins(course, chapter)
    target = out or course / "results" / f"{chapter}.feedback.zip"
    if not target.parent.is_dir():
        raise CourseError(f"There is no folder {target.parent}; make it, or give another --out.")
    draft = target.with_name(f".{target.name}.draft")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        for student, page in pages.items():
            name = f"{origins.get(student, f'{student}/{chapter}')}.html"
            entry = zipfile.ZipInfo(name, FIXED_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, page.read_bytes())
    os.replace(draft, target)
    return target, len(pages), sorted(handed_in - set(pages))
