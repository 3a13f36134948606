"""`course doctor`: is this machine ready?"""

from typing import Annotated

import typer

from autograder.commands.common import EXIT_PROBLEMS, console

NAME = "doctor"
EXAMPLES = "Examples: `course doctor`; `course doctor --installed`, while an image is built."


def run(
    installed: Annotated[
        bool,
        typer.Option("--installed", help="Exit with 1 for what is installed alone, not for memory and disk space."),
    ] = False,
) -> None:
    """Look at Python, the packages, memory, disk and GPU; say in a sentence whether the course runs here."""
    from autograder.learning.doctor import EnvironmentCheck

    look = EnvironmentCheck()
    console().print(str(look), markup=False, highlight=False, soft_wrap=True)
    if any(one.good is False and not (installed and one.passes) for one in look.found):
        raise typer.Exit(EXIT_PROBLEMS)
