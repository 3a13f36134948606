"""`course export`: a chapter's points for a spreadsheet or an LMS."""

from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.common import (
    ChapterArgument,
    CourseOption,
    console,
    course_root,
    handed_in_chapter,
    need_instructor_packages,
)

NAME = "export"
EXAMPLES = (
    "Examples: `course export 01_attention --to csv`; `course export 01_attention --to canvas --out points.csv`; "
    "`course export 01_attention --to gradescope-autograder`."
)
AUTOGRADER = "gradescope-autograder"


def run(
    chapter: ChapterArgument,
    system: Annotated[str, typer.Option("--to", help="csv, canvas, moodle, gradescope or gradescope-autograder.")],
    out: Annotated[Path | None, typer.Option("--out", help="The file to write.", show_default="in results/")] = None,
    database: Annotated[
        str | None, typer.Option("--database", help="The gradebook's URL.", show_default="nbgrader_config.py's")
    ] = None,
    course: CourseOption = None,
) -> None:
    """Write the points that stand, a person's and the late policy's counted in; or an autograder for Gradescope."""
    need_instructor_packages()
    folder = course_root(course)
    chapter = handed_in_chapter(folder, chapter)
    if system == AUTOGRADER:
        from autograder.collecting.gradescope import pack_autograder

        path = pack_autograder(folder, chapter, out)
        console().print(f"Gradescope's autograder: {path}", soft_wrap=True, markup=False)
        return
    from autograder.collecting.export import export

    console().print(f"Points: {export(folder, chapter, system, out, database)}", soft_wrap=True, markup=False)
