"""`course why`: the reasons for a student's points, in words."""

from typing import Annotated

import typer

from autograder.commands.common import CourseOption, console, course_root
from autograder.errors import CourseError

NAME = "why"
EXAMPLES = "Examples: `course why ada 01_attention`; `course why ada 01_attention softmax --course demo`."


def run(
    student: Annotated[str, typer.Argument(help="The student's folder name in submitted/.")],
    chapter: Annotated[str, typer.Argument(help="The chapter's folder name, as 01_attention.")],
    exercise: Annotated[str | None, typer.Argument(help="One exercise, as softmax.")] = None,
    course: CourseOption = None,
) -> None:
    """Say why a student's points in a chapter are what they are, from results/CHAPTER.json."""
    from autograder.grading.results import read_results, results_path
    from autograder.reports.why import reasons

    folder = course_root(course)
    if not results_path(folder, chapter).is_file():
        raise CourseError(f"There are no results of {chapter} yet; `course grade {chapter}` makes them.")
    for sentence in reasons(read_results(folder, chapter), student, exercise):
        console().print(sentence, markup=False, soft_wrap=True)
