"""All reports in the list's order, and the page that tells of them.

`python -m autograder.grading.field_reports.catalogue` writes the page.
"""

from __future__ import annotations

from pathlib import Path

from autograder.grading.field_reports.of_cells import OF_CELLS
from autograder.grading.field_reports.of_classes import OF_CLASSES
from autograder.grading.field_reports.of_files import OF_FILES
from autograder.grading.field_reports.of_runs import OF_RUNS
from autograder.grading.field_reports.report import GRADED_TOGETHER, Report

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "field_reports.md"
# The list's numbers have gaps; the letters are what trials have found.
NUMBERS = (
    *(1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32, 34, 35, 37, 38, 40, 41, 43),
    *(44, 46, 47, 49, 50, 52, 53, 55, 56, 58, 59, 61, 62, 64, 65, 67, 68, 70, 71, 73, 74, 76, 77, 79, 80, 82, 83, 85),
    86,
)
LETTERS = "abcdefghij"
KEYS = (*map(str, NUMBERS), *LETTERS)
INTRODUCTION = """\
# What goes wrong elsewhere, and what happens here

Each row is something that users of notebook graders have met, or that trials with one have found (the letters). Where
a submission can show it, one is handed in: {submissions} of them, and an honest one, are graded as one class, and each
gets the points, the state and the words that are right for it. The other rows name the tests that show what happens.
Of {rows} rows, {with_submission} have submissions of their own.

This page is made by `python -m autograder.grading.field_reports.catalogue`.

| Row | What was reported | What happens here | Tested in |
| --- | --- | --- | --- |
"""


def in_order() -> list[Report]:
    """Return the reports in the list's order."""
    by_key = {report.key: report for report in (*OF_CELLS, *OF_FILES, *OF_RUNS, *OF_CLASSES)}
    return [by_key[key] for key in KEYS if key in by_key]


REPORTS = in_order()


def field_page() -> str:
    """Return the page."""
    head = INTRODUCTION.format(
        submissions=sum(len(report.hand_ins) for report in REPORTS),
        rows=len(REPORTS),
        with_submission=sum(bool(report.hand_ins) for report in REPORTS),
    )
    return head + "".join(
        f"| {report.key} | {report.reported} | {report.here} | {places(report)} |\n" for report in REPORTS
    )


def places(report: Report) -> str:
    """Return where a report is tested, each file once, as links from the page."""
    files = dict.fromkeys(test.partition("::")[0] for test in report.tested_by)
    shown = {GRADED_TOGETHER.partition("::")[0]: number_of(len(report.hand_ins))}
    return "<br>".join(f"{shown.get(file, '')}[{Path(file).stem}](../{file})" for file in files)


def number_of(submissions: int) -> str:
    """Return how many submissions show it, in words before a link."""
    if not submissions:
        return ""
    return "a submission in " if submissions == 1 else f"{submissions} submissions in "


def main() -> None:
    """Write the page."""
    PAGE.write_text(field_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
