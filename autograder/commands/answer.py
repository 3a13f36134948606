"""`course answer`: the model answer, for a learner who asks twice."""

from typing import Annotated

import typer

from autograder.commands.common import CourseOption, console, course_root

NAME = "answer"
EXAMPLES = "Examples: `course answer softmax`; `course answer softmax --yes`."


def run(
    exercise: Annotated[str, typer.Argument(help="The exercise, as softmax.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    course: CourseOption = None,
) -> None:
    """Print an exercise's model answer, after asking whether you want it."""
    from autograder.learning.answers import model_answer

    text = model_answer(course_root(course), exercise)
    if not yes and not typer.confirm(f"Have you opened the three hints? Show the model answer of {exercise}?"):
        console().print("Good choice. The hints stay where they are.")
        return
    console().print(text, markup=False, highlight=False, soft_wrap=True)
