"""`course reset`: one exercise from the start again."""

from typing import Annotated

import typer

from autograder.commands.common import CourseOption, console, course_root

NAME = "reset"
EXAMPLES = "Examples: `course reset softmax`."


def run(
    exercise: Annotated[str, typer.Argument(help="The exercise, as softmax.")],
    course: CourseOption = None,
) -> None:
    """Put an exercise's starter back into its notebook; a copy beside it keeps what was there.

    Close the notebook first, or reload it afterwards: an open page would save its own version over it.
    """
    from autograder.learning.resetting import reset

    path, kept = reset(course_root(course), exercise)
    out = console()
    if kept is None:
        out.print(f"{exercise} is as it was handed out; nothing was changed.", soft_wrap=True, markup=False)
        return
    out.print(f"{exercise} is back at its starter in {path}.", soft_wrap=True, markup=False)
    out.print(f"What was there is kept in {kept}. Reload the notebook if it is open.", soft_wrap=True, markup=False)
