"""`course due`: when a chapter is due."""

from typing import Annotated

import typer

from autograder.commands.common import (
    ChapterArgument,
    CourseOption,
    console,
    course_root,
    need_instructor_packages,
    resolve_chapter,
)

NAME = "due"
EXAMPLES = "Examples: `course due 01_attention '2026-12-01 23:59' --zone Europe/Berlin`."


def run(
    chapter: ChapterArgument,
    moment: Annotated[str, typer.Argument(help="Date and time on a clock, as '2026-12-01 23:59'.")],
    zone: Annotated[str, typer.Option("--zone", help="The clock's time zone, as Europe/Berlin.")],
    course: CourseOption = None,
) -> None:
    """Set a chapter's due date in the gradebook; the next `course grade` applies the late policy to it."""
    need_instructor_packages()
    from autograder.course_folder import chapter_names, learner_chapters
    from autograder.grading.events import run_log
    from autograder.grading.stock import StockCourse
    from autograder.late_policy import due_in_utc, due_in_words

    folder = course_root(course)
    name = resolve_chapter(chapter, chapter_names(folder) or learner_chapters(folder))
    due = due_in_utc(moment, zone)
    StockCourse(folder, name, run_log(name)).set_due_date(due)
    console().print(f"{name} is due {due_in_words(due, zone)}.", soft_wrap=True, markup=False)
