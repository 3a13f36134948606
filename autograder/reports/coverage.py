"""The table of how many cases, misconceptions and alternatives stand behind each exercise."""

import re
from collections.abc import Iterable
from pathlib import Path

from rich.table import Table

from autograder.errors import CourseError

BEGIN, END = "<!-- coverage:begin -->", "<!-- coverage:end -->"
BETWEEN_MARKERS = re.compile(f"(?<={re.escape(BEGIN)}).*(?={re.escape(END)})", re.DOTALL)
TITLES = {
    "chapter": "chapter",
    "exercise": "exercise",
    "cases": "visible cases",
    "hidden_cases": "hidden cases",
    "misconceptions": "misconceptions",
    "alternatives": "accepted alternatives",
}
SHORT_TITLES = ("", "exercise", "cases", "hidden", "wrong", "right")  # a terminal is 80 wide
TEXT_COLUMNS = 2

Row = dict[str, str | int]


def coverage_rows(exercises: Iterable | None = None) -> list[Row]:
    """Return one row per exercise, in the order of the chapters; by default of every registered exercise."""
    if exercises is None:
        from autograder.exercise import all_exercises

        exercises = all_exercises()
    rows = [coverage_row(exercise) for exercise in exercises]
    return sorted(rows, key=lambda row: str(row["chapter"]))


def coverage_row(exercise) -> Row:
    """Count what one exercise declares."""
    hidden = sum(bool(case.hidden) for case in exercise.cases)
    return {
        "exercise": exercise.name,
        "chapter": exercise.chapter,
        "cases": len(exercise.cases) - hidden,
        "hidden_cases": hidden,
        "misconceptions": len(exercise.misconceptions),
        "alternatives": len(exercise.alternatives),
    }


def rich_table(rows: list[Row]) -> Table:
    """Return the rows as a table for the terminal, with the sums below."""
    caption = "wrong: misconceptions told by name; right: accepted forms"
    table = Table(show_footer=True, title="What stands behind each exercise", caption=caption)
    for position, (key, title) in enumerate(zip(TITLES, SHORT_TITLES, strict=True)):
        if position < TEXT_COLUMNS:
            table.add_column(title, footer=f"{len(rows)} exercises" if key == "exercise" else "", no_wrap=True)
        else:
            table.add_column(title, justify="right", footer=str(sum(int(row[key]) for row in rows)))
    previous = None
    for row in rows:
        if previous not in (None, row["chapter"]):
            table.add_section()
        previous = row["chapter"]
        number = str(row["chapter"]).split("_")[0]
        table.add_row(number, *(str(row[key]) for key in list(TITLES)[1:]))
    return table


def markdown_table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    header = "| " + " | ".join(TITLES.values()) + " |"
    rule = "|" + "---|" * TEXT_COLUMNS + "---:|" * (len(TITLES) - TEXT_COLUMNS)
    body = [
        "| " + " | ".join(f"`{row[key]}`" if key == "exercise" else str(row[key]) for key in TITLES) + " |"
        for row in rows
    ]
    return "\n".join([header, rule, *body])


def with_table(text: str, rows: list[Row]) -> str:
    """Return the text with the table between its markers replaced.

    Raises:
        CourseError: the markers are missing, or not once each and in order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or not BETWEEN_MARKERS.search(text):
        raise CourseError(f"README.md must hold {BEGIN} and, after it, {END}, once each: the table goes between them.")
    return BETWEEN_MARKERS.sub(lambda _: f"\n{markdown_table(rows)}\n", text)


def write_table(readme: Path, rows: list[Row]) -> bool:
    """Write the table into the README; return whether that changed it."""
    if not readme.is_file():
        raise CourseError(f"There is no {readme}; the table of coverage is written into it.")
    before = readme.read_text(encoding="utf-8")
    after = with_table(before, rows)
    if after != before:
        readme.write_text(after, encoding="utf-8")
    return after != before


def stale_coverage(readme: Path) -> list[str]:
    """Return what is wrong with the README's table: nothing, or one sentence."""
    if not readme.is_file() or BEGIN not in (text := readme.read_text(encoding="utf-8")):
        return []
    if with_table(text, coverage_rows()) != text:
        return [f"{readme.name}: the table of coverage is stale; run `course coverage --write`."]
    return []
