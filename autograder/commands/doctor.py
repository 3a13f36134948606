"""`course doctor`: is this machine ready?"""

import typer

from autograder.commands.common import EXIT_PROBLEMS, console

NAME = "doctor"
EXAMPLES = "Examples: `course doctor`."


def run() -> None:
    """Look at Python, the packages, memory, disk and GPU; say in a sentence whether the course runs here."""
    from autograder.learning.doctor import EnvironmentCheck

    look = EnvironmentCheck()
    console().print(str(look), markup=False, highlight=False, soft_wrap=True)
    if any(one.good is False for one in look.found):
        raise typer.Exit(EXIT_PROBLEMS)
