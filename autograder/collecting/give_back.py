"""Pack a chapter's feedback pages for an LMS, under the names that it gave the submissions."""

import zipfile
from pathlib import Path

from autograder.collecting.record import Remembered, recall
from autograder.collecting.whole import draft_of
from autograder.errors import CourseError

FIXED_TIME = (2020, 1, 1, 0, 0, 0)  # the same pages make the same archive


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
    known = recall(course, chapter)
    target = out or course / "results" / f"{chapter}.feedback.zip"
    if out is None:
        target.parent.mkdir(exist_ok=True)
    with draft_of(target) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        for student, page in pages.items():
            name = f"{known.get(student, Remembered()).origin or f'{student}/{chapter}'}.html"
            entry = zipfile.ZipInfo(name, FIXED_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, page.read_bytes())
    return target, len(pages), sorted(handed_in - set(pages))
