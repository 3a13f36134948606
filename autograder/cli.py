"""The command `course`: one door for the learner, the author and the instructor."""

import atexit
import gc
import sys
from collections.abc import Sequence

import typer

from autograder.authoring.roles import BuildError
from autograder.commands import (
    answer,
    build,
    collect,
    coverage,
    demo,
    doctor,
    due,
    export,
    feedback,
    give_back,
    grade,
    lab,
    progress,
    release,
    report,
    reset,
    update,
    why,
)
from autograder.commands.common import EXIT_WRONG_USE, say_error
from autograder.errors import CourseError

PARSER_OF_ADDRESSES = "rfc3987_syntax"  # jsonschema would build it, a second's work; no schema of ours has addresses
EPILOG = """
Exit codes: 0 all is well; 1 the work was done and found problems (a stale chapter, a submission that could
not be graded); 2 wrong use or bad input, said in one sentence on stderr; 130 ended by Ctrl-C.
"""

app = typer.Typer(
    name="course",
    help="Inside a transformer block: open the chapters, build them, and grade a class.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    *(lab, doctor, progress, answer, reset, update),  # learners
    *(build, coverage),  # authors
    *(release, due, collect, grade, why, feedback, give_back, report, export, demo),  # instructors
)
for command in COMMANDS:
    app.command(name=command.NAME, epilog=command.EXAMPLES)(command.run)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `course`; bad input becomes one sentence on stderr and exit code 2."""
    sys.modules.setdefault(PARSER_OF_ADDRESSES, None)  # pyright: ignore[reportArgumentType]
    atexit.register(gc.freeze)  # or Python would search all libraries for garbage once more at its end
    try:
        app(args=arguments, prog_name="course")
    except (CourseError, BuildError) as error:
        say_error(str(error))
        sys.exit(EXIT_WRONG_USE)
    except OSError as error:
        say_error(f"{error.filename or 'A file'} cannot be used: {error.strerror or error}.")
        sys.exit(EXIT_WRONG_USE)


if __name__ == "__main__":
    main()
