"""`course release`: what learners get."""

from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.common import (
    CourseOption,
    console,
    count,
    course_root,
    need_instructor_packages,
    resolve_chapter,
)

NAME = "release"
EXAMPLES = "Examples: `course release 01_attention --out week1.zip`; `course release all --out course.zip`."
ALL = "all"


def run(
    chapter: Annotated[str, typer.Argument(help="The chapter, as 01_attention or 1; all for every chapter.")],
    out: Annotated[Path, typer.Option("--out", help="The zip archive to write.")],
    course: CourseOption = None,
) -> None:
    """Pack a chapter with the start page, course_lib, the checks and the set-up; no answers, no tests."""
    need_instructor_packages()
    from autograder.collecting.bundle import pack_bundle
    from autograder.course_folder import chapter_names

    folder = course_root(course)
    known = chapter_names(folder)
    start = [name for name in known if name.startswith("00_")]
    chosen = known if chapter == ALL else sorted({*start, resolve_chapter(chapter, known)})
    number = pack_bundle(folder, chosen, out)
    console().print(f"{out}: {', '.join(chosen)}; {count(number, 'file')}.", soft_wrap=True, markup=False)
