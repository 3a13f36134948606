"""An autograder for Gradescope: a zip archive whose run script grades one submission with our engine.

Gradescope unpacks the archive to /autograder/source, runs setup.sh once while it builds the image, and run_autograder
for each submission; that reads /autograder/submission and writes /autograder/results/results.json.
"""

import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from autograder.collecting.bundle import EXECUTABLE, add, engine_files
from autograder.collecting.whole import draft_of
from autograder.course_folder import CONFIG_NAME, SOLUTIONS, source_path
from autograder.errors import CourseError

STUDENT = "student"
SETUP = """#!/usr/bin/env bash
# Run once by Gradescope: the course with its pinned packages in an environment of its own.
set -euo pipefail
cd "$(dirname "$0")"
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3 python3-venv
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Choose an image with Python 3.11 or later.")'
python3 -m venv .venv
.venv/bin/pip install --quiet -c constraints.txt -e ".[instructor]"
"""
RUN = """#!/usr/bin/env bash
# Run by Gradescope for each submission. COURSE_AUTOGRADER names another root, and COURSE_PYTHON another Python.
set -euo pipefail
root="${{COURSE_AUTOGRADER:-/autograder}}"
python="${{COURSE_PYTHON:-$root/source/.venv/bin/python}}"
cd "$root/source"
exec "$python" -m autograder.collecting.gradescope "$root" {chapter}
"""
README = "An autograder of this course for Gradescope; grading reads its answers, so keep it from students.\n"


def pack_autograder(course: Path, chapter: str, out: Path | None = None) -> Path:
    """Write the archive for one chapter; return it.

    Raises:
        CourseError: there is no such chapter here, no folder to write to, or the course lacks its code or set-up.
    """
    source = source_path(course, chapter)
    if not source.is_file():
        raise CourseError(f"There is no {source.relative_to(course)}; an autograder needs the chapter's source.")
    target = out or course / "results" / f"{chapter}.gradescope.zip"
    if out is None:
        target.parent.mkdir(exist_ok=True)
    with draft_of(target) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        add(archive, "setup.sh", SETUP.encode(), EXECUTABLE)
        add(archive, "run_autograder", RUN.format(chapter=chapter).encode(), EXECUTABLE)
        add(archive, "README.md", README.encode())
        for name, content in engine_files(course):
            add(archive, name, content)
        add(archive, f"{SOLUTIONS}/{source.name}", source.read_bytes())
    return target


def grade_for_gradescope(root: Path, chapter: str) -> dict[str, Any]:
    """Grade what lies in root/submission; return what Gradescope reads."""
    from autograder.grading.engine import grade_chapter
    from autograder.grading.options import GradeOptions

    source = root / "source"
    with tempfile.TemporaryDirectory(prefix="grading-") as folder:
        course = Path(folder)
        shutil.copy(source / CONFIG_NAME, course)
        (course / SOLUTIONS).mkdir()
        shutil.copy(source_path(source, chapter), course / SOLUTIONS)
        shutil.copytree(root / "submission", course / "submitted" / STUDENT / chapter)
        result = grade_chapter(course, chapter, GradeOptions(workers=1, feedback=False))
    return as_gradescope_reads(result.students[STUDENT])


def as_gradescope_reads(found) -> dict[str, Any]:
    """Return a submission's result in the shape of results.json: a test for each exercise, with what to look at."""
    tests = []
    for name, exercise in found.exercises.items():
        waits = exercise.status == "needs_manual"
        words = "A person reads this answer." if waits else exercise.message or "Everything that was asked holds."
        tests.append(
            {
                "name": name,
                "score": exercise.points,
                "max_score": exercise.maximum,
                "output": words,
                "visibility": "visible",
            }
        )
    words = "\n".join([*found.warnings, *found.repairs])
    return {"score": found.points, "output": words, "visibility": "visible", "tests": tests}


def refusal(error: Exception) -> dict[str, Any]:
    """Return a result that says in a sentence why nothing was graded."""
    return {"score": 0.0, "output": f"Nothing could be graded: {error}", "visibility": "visible", "tests": []}


def main(root: str, chapter: str) -> None:
    """Grade and write results.json, also when grading fails."""
    try:
        told = grade_for_gradescope(Path(root), chapter)
    except (CourseError, OSError) as error:
        told = refusal(error)
    target = Path(root) / "results" / "results.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
