"""`course why`: the reasons for a student's points, in words."""

from typing import Annotated

import typer

from autograder.commands.common import ChapterArgument, CourseOption, console, course_root, handed_in_chapter
from autograder.errors import CourseError

NAME = "why"
EXAMPLES = "Examples: `course why ada 01_attention`; `course why ada 01_attention softmax --course demo`."


def run(
    student: Annotated[str, typer.Argument(help="The student's folder name in submitted/.")],
    chapter: ChapterArgument,
    exercise: Annotated[str | None, typer.Argument(help="One exercise, as softmax.")] = None,
    course: CourseOption = None,
) -> None:
    """Say why a student's points in a chapter are what they are, from results/CHAPTER.json and the gradebook."""
    from autograder.grading.results import results_path
    from autograder.grading.standing import standing
    from autograder.reports.why import reasons

    folder = course_root(course)
    chapter = handed_in_chapter(folder, chapter)
    if not results_path(folder, chapter).is_file():
        raise CourseError(f"There are no results of {chapter} yet; `course grade {chapter}` makes them.")
    for sentence in reasons(standing(folder, chapter).result, student, exercise):
        console().print(sentence, markup=False, soft_wrap=True)
