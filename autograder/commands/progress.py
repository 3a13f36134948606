"""`course progress`: how far a learner is."""

from typing import Annotated

import typer

from autograder.commands.common import CourseOption, console, course_root

NAME = "progress"
EXAMPLES = "Examples: `course progress`; `course progress 03`."


def run(
    chapter: Annotated[
        str | None, typer.Argument(help="One chapter, exercise by exercise, as 01_attention or 1.", show_default="all")
    ] = None,
    course: CourseOption = None,
) -> None:
    """Show what passed, what was tried and what is untouched, read from the saved notebooks in chapters/."""
    from autograder.commands.common import resolve_chapter
    from autograder.course_folder import learner_chapters
    from autograder.learning.progress import progress
    from autograder.reports.progress_table import chapter_table, course_table

    folder = course_root(course)
    found = progress(folder)
    if chapter is None:
        console().print(course_table(found))
        return
    name = resolve_chapter(chapter, learner_chapters(folder))
    console().print(chapter_table(next(one for one in found if one.chapter == name)))
