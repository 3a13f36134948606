"""`course report`: one page about a class."""

from autograder.commands.common import (
    ChapterArgument,
    CourseOption,
    console,
    course_root,
    handed_in_chapter,
    need_instructor_packages,
)

NAME = "report"
EXAMPLES = "Examples: `course report 01_attention`; `course report 01_attention --course demo`."


def run(
    chapter: ChapterArgument,
    course: CourseOption = None,
) -> None:
    """Write results/CHAPTER.report.html: points, difficulty, misconceptions, failures, likeness, changes."""
    need_instructor_packages()
    from autograder.reports.class_report import write_report

    folder = course_root(course)
    path = write_report(folder, handed_in_chapter(folder, chapter))
    console().print(f"Class report: {path}", soft_wrap=True, markup=False)
