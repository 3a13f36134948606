"""What the commands share: where they speak, the course's folder, and the name of a chapter."""

import difflib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from autograder.errors import CourseError

EXIT_PROBLEMS = 1
EXIT_WRONG_USE = 2
EXIT_INTERRUPTED = 130
ChapterArgument = Annotated[str, typer.Argument(help="The chapter, as 01_attention or 1.")]
CourseOption = Annotated[
    Path | None, typer.Option("--course", help="The course's folder.", show_default="here or above")
]


def console() -> Console:
    """Return the console for results, on stdout."""
    return Console(highlight=False)


def error_console() -> Console:
    """Return the console for progress and complaints, on stderr."""
    return Console(stderr=True, highlight=False)


def say_error(message: str) -> None:
    """Print one sentence on stderr, as it is: no markup, no lines broken inside."""
    error_console().print(message, style="red", markup=False, soft_wrap=True)


def course_root(folder: Path | None = None) -> Path:
    """Return the course's folder: the one given, or the nearest at or above the working folder."""
    from autograder.course_folder import CONFIG_NAME, CourseNotFound, find_course

    if folder is not None:
        if not (folder / CONFIG_NAME).is_file():
            raise CourseError(f"--course: {folder} is no course folder, since it holds no {CONFIG_NAME}.")
        return folder.absolute()
    try:
        return find_course(Path.cwd())
    except CourseNotFound as error:
        raise CourseError(str(error)) from error


def resolve_chapter(given: str, chapters: Sequence[str]) -> str:
    """Return the chapter that `given` names: its folder `01_attention`, number `1`, or title `attention`."""
    wanted = given.strip().strip("/")
    for chapter in chapters:
        number, _, title = chapter.partition("_")
        if wanted in (chapter, number, number.lstrip("0") or "0", title):
            return chapter
    if not chapters:
        raise CourseError(f"There is no chapter {given!r}, and none at all in this course; run `course build`.")
    close = difflib.get_close_matches(wanted, chapters, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(chapters)}."
    raise CourseError(f"There is no chapter {given!r}; {hint}")


def handed_in_chapter(course: Path, given: str) -> str:
    """Return the chapter that `given` names; one that only was handed in or graded has its full name alone."""
    from autograder.course_folder import SOURCE_NOTEBOOKS, chapter_names, learner_chapters

    sources = sorted(path.parent.name for path in (course / SOURCE_NOTEBOOKS).glob("*/*.ipynb"))
    chapters = sorted({*chapter_names(course), *learner_chapters(course), *sources})
    named = bool(given.strip()) and Path(given).name == given
    if named and given not in chapters:
        elsewhere = (
            course / "results" / f"{given}.json",
            course / "source" / given,
            *(folder / given for folder in (course / "submitted").glob("*")),
        )
        if any(path.exists() for path in elsewhere):
            return given
    return resolve_chapter(given, chapters)


def need_instructor_packages() -> None:
    """Refuse in a sentence where a learner's installation lacks the instructor's packages."""
    if find_spec("copydetect") is None:
        raise CourseError('This needs the instructor\'s packages: pip install -c constraints.txt -e ".[instructor]"')


def count(number: int, noun: str) -> str:
    """Return the number with its noun, in the plural where it is not one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
