"""`course coverage`: how thoroughly each exercise is checked."""

import json
from typing import Annotated

import typer

from autograder.commands.common import console, course_root

NAME = "coverage"
EXAMPLES = "Examples: `course coverage`; `course coverage --json`; `course coverage --write`."


def run(
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects instead of a table.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Write README.md's tables and docs/nothing_lost.md.")] = False,
) -> None:
    """Count each exercise's cases, hidden cases, known misconceptions and accepted alternatives."""
    from autograder.reports import attention_lines, coverage, nothing_lost

    rows = coverage.coverage_rows()
    if as_json:
        print(json.dumps(rows, indent=2))
    elif write:
        readme = course_root() / "README.md"
        changed = coverage.write_table(readme, rows) | attention_lines.write_lines(readme)
        console().print(f"{readme.name}: {'its tables are new' if changed else 'already up to date'}.")
        changed = nothing_lost.write_page(course_root())
        console().print(f"{nothing_lost.PAGE}: {'the page is new' if changed else 'already up to date'}.")
    else:
        console().print(coverage.rich_table(rows))
