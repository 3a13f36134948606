"""Where a course lives: the folder that holds `nbgrader_config.py` and `solutions/`, and what lies in it."""

from pathlib import Path

CONFIG_NAME = "nbgrader_config.py"
SOLUTIONS = "solutions"
CHAPTERS = "chapters"
STARTERS = ".starters"  # in chapters/ of a learner's bundle, which has no sources
SOURCE_NOTEBOOKS = Path("build") / "source"
TEST_ROOMS = ("attacks", "browser", "field_reports", "testing")  # folders of our packages that only tests use


class CourseNotFound(LookupError):
    """No folder here or above is a course."""


def find_course(start: Path) -> Path:
    """Find the course folder that `start` is, or lies in.

    Raises:
        CourseNotFound: neither `start` nor any folder above it is a course.
    """
    start = Path(start).absolute()
    for folder in (start, *start.parents):
        if (folder / CONFIG_NAME).is_file() and any((folder / name).is_dir() for name in (SOLUTIONS, CHAPTERS)):
            return folder
    raise CourseNotFound(
        f"{start} is not inside a course: neither it nor a folder above it holds {CONFIG_NAME} with {SOLUTIONS}/ or "
        f"{CHAPTERS}/; change to the course folder, or name it with --course."
    )


def chapter_names(course: Path) -> list[str]:
    """List the chapters that have a source in `solutions/`, in order (`01_attention`, …)."""
    return sorted(path.stem for path in (course / SOLUTIONS).glob("[0-9][0-9]_*.py"))


def learner_chapters(course: Path) -> list[str]:
    """List the chapters that a learner can open, in order; a learner's bundle has no sources."""
    folders = (course / CHAPTERS).glob("[0-9][0-9]_*")
    return sorted(path.name for path in folders if chapter_path(course, path.name).is_file())


def source_path(course: Path, chapter: str) -> Path:
    """Return the source that an author edits."""
    return course / SOLUTIONS / f"{chapter}.py"


def source_notebook_path(course: Path, chapter: str) -> Path:
    """Return the instructor's notebook, where nbgrader looks for it."""
    return course / SOURCE_NOTEBOOKS / chapter / f"{chapter}.ipynb"


def chapter_path(course: Path, chapter: str) -> Path:
    """Return the notebook that a student opens."""
    return course / CHAPTERS / chapter / f"{chapter}.ipynb"


def starter_path(course: Path, chapter: str) -> Path:
    """Return the notebook as it was handed out, which a learner's bundle brings along."""
    return course / CHAPTERS / STARTERS / f"{chapter}.ipynb"
