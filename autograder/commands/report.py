"""`course report`: one page about a class."""

from typing import Annotated

import typer

from autograder.commands.common import CourseOption, console, course_root, need_instructor_packages

NAME = "report"
EXAMPLES = "Examples: `course report 01_attention`; `course report 01_attention --course demo`."


def run(
    chapter: Annotated[str, typer.Argument(help="The chapter's folder name, as 01_attention.")],
    course: CourseOption = None,
) -> None:
    """Write results/CHAPTER.report.html: points, difficulty, misconceptions, failures, likeness, changes."""
    need_instructor_packages()
    from autograder.reports.class_report import write_report

    console().print(f"Class report: {write_report(course_root(course), chapter)}", soft_wrap=True, markup=False)
