"""`course report`: one page about a class."""

from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.common import console, course_root, need_instructor_packages

NAME = "report"
EXAMPLES = "Examples: `course report 01_attention`; `course report 01_attention --course demo`."


def run(
    chapter: Annotated[str, typer.Argument(help="The chapter's folder name, as 01_attention.")],
    course: Annotated[
        Path | None, typer.Option("--course", help="The course's folder.", show_default="here or above")
    ] = None,
) -> None:
    """Write results/CHAPTER.report.html: points, difficulty, misconceptions, failures, likeness, changes."""
    need_instructor_packages()
    from autograder.reports.class_report import write_report

    console().print(f"Class report: {write_report(course_root(course), chapter)}", soft_wrap=True, markup=False)
