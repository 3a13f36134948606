"""A learner's progress as tables: for the terminal, and for a notebook."""

import html
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from autograder.learning.progress import STATES, ChapterProgress

WORDS = ("chapter", "exercise", "state")  # columns that hold words; the others hold numbers
LEFT, RIGHT = "text-align:left", "text-align:right"
HEADINGS = ("chapter", "passed", "answered", "tried", "untouched", "points")


def course_rows(found: Iterable[ChapterProgress]) -> list[tuple[str, ...]]:
    """Return a row of words for each chapter that has exercises, and a last one for all of them."""
    chapters = [one for one in found if one.steps or one.problem]
    rows = [row_of(one) for one in chapters]
    whole = ChapterProgress("all", "all", tuple(step for one in chapters for step in one.steps))
    return [*rows, row_of(whole)]


def row_of(one: ChapterProgress) -> tuple[str, ...]:
    """Return one chapter's row; a notebook that cannot be read says so."""
    if one.problem:
        return (one.chapter, one.problem, "", "", "", "")
    return (one.chapter, *(str(one.number(state)) for state in STATES), f"{one.points:g} of {one.maximum:g}")


def course_table(found: Iterable[ChapterProgress]) -> Table:
    """Return the table of all chapters for the terminal."""
    table = Table(title="Progress", box=SIMPLE_HEAD, caption="as of the last time each notebook was saved")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "chapter" else "right")
    for row in course_rows(found):
        table.add_row(*map(Text, row))
    return table


def chapter_table(one: ChapterProgress) -> Table:
    """Return the table of one chapter's exercises for the terminal."""
    table = Table(title=one.title, box=SIMPLE_HEAD, caption=one.problem or "as of the last time it was saved")
    for heading in ("exercise", "points", "state"):
        table.add_column(heading, justify="right" if heading == "points" else "left")
    for step in one.steps:
        table.add_row(Text(step.exercise), f"{step.points:g}", Text(f"{step.state}: {STATES[step.state]}"))
    return table


def course_html(found: Iterable[ChapterProgress]) -> str:
    """Return the table of all chapters for a notebook, each chapter's exercises folded below it."""
    chapters = list(found)
    folded = "".join(chapter_html(one) for one in chapters if one.steps)
    return f"{html_table(HEADINGS, course_rows(chapters))}{folded}"


def chapter_html(one: ChapterProgress) -> str:
    """Return one chapter's exercises, folded; what a state means stands beside the table of all chapters."""
    rows = [(step.exercise, step.state, f"{step.points:g}") for step in one.steps]
    table = html_table(("exercise", "state", "points"), rows)
    return f"<details><summary>{html.escape(one.chapter)}, exercise by exercise</summary>{table}</details>"


def html_table(headings: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table for a notebook, whose own style would set everything to the right: numbers alone stand there."""
    head = "".join(f'<th scope="col" style="{aligned(heading)}">{html.escape(heading)}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row" style="{LEFT}">{html.escape(row[0])}</th>'
        + "".join(
            f'<td style="{aligned(heading)}">{html.escape(cell)}</td>'
            for heading, cell in zip(headings[1:], row[1:], strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def aligned(heading: str) -> str:
    """Return how a column is set."""
    return LEFT if heading in WORDS else RIGHT
