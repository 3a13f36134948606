"""`course feedback`: the pages that students get back, made anew from the gradebook."""

from typing import Annotated

import typer

from autograder.commands.common import (
    ChapterArgument,
    CourseOption,
    console,
    count,
    course_root,
    handed_in_chapter,
    need_instructor_packages,
)

NAME = "feedback"
EXAMPLES = "Examples: `course feedback 01_attention`; `course feedback 01_attention --student ada`."


def run(
    chapter: ChapterArgument,
    student: Annotated[str | None, typer.Option("--student", help="This student only.")] = None,
    course: CourseOption = None,
) -> None:
    """Write feedback/STUDENT/CHAPTER/CHAPTER.html anew, with the points and comments of now.

    `course grade` does so by itself; this is for after grading by hand in formgrader.
    """
    need_instructor_packages()
    from autograder.reports.pages import write_pages

    folder = course_root(course)
    chapter = handed_in_chapter(folder, chapter)
    written = write_pages(folder, chapter, student)
    console().print(f"{count(written, 'feedback page')} in {folder / 'feedback'}", soft_wrap=True, markup=False)
