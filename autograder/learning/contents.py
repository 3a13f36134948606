"""The course's chapters with their minutes and points, read from the notebooks themselves."""

import html
import re
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from autograder.course_folder import CourseNotFound, chapter_path, find_course, learner_chapters
from autograder.errors import CourseError
from autograder.learning.notebooks import learner_notebook
from autograder.learning.progress import progress
from autograder.reports.progress_table import course_html, course_rows

COUNTS = re.compile(r"\*\*(?P<time>[\d][^*·]*)·(?P<counts>[^*]*)\*\*")
HEADINGS = ("chapter", "time", "what is in it")
NOT_HERE = "The chapters are not beside this notebook, so there is no table here."


@dataclass(frozen=True)
class Entry:
    """One chapter of the course."""

    chapter: str
    title: str
    time: str
    counts: str


def contents(course: Path) -> list[Entry]:
    """Return the chapters in order; one whose notebook cannot be read is left out."""
    found = []
    for chapter in learner_chapters(course):
        try:
            found.append(entry(chapter, learner_notebook(chapter_path(course, chapter))))
        except CourseError:
            continue
    return found


def entry(chapter: str, notebook: NotebookNode) -> Entry:
    """Return what a chapter's opening says."""
    opening = notebook.cells[0].source if notebook.cells else ""
    counts = COUNTS.search(opening)
    time, rest = (counts["time"].strip(), counts["counts"].strip()) if counts else ("", "")
    return Entry(chapter, notebook.metadata.get("title", chapter), time, rest)


class Table:
    """Rows of words: a table in a notebook, lines of text elsewhere."""

    def __init__(self, rows: list[tuple[str, ...]], shown: str):
        """Keep both forms."""
        self.rows, self.shown = rows, shown

    def __str__(self) -> str:
        """Return a line for each row."""
        return "\n".join("  ".join(row) for row in self.rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.shown


def chapter_table(course: Path | None = None) -> Table:
    """Return the chapters with minutes and points, each linked to its notebook."""
    root = here() if course is None else course
    if root is None:
        return Table([(NOT_HERE,)], f"<p>{NOT_HERE}</p>")
    found = contents(root)
    rows = [(one.chapter, one.title, one.time, one.counts) for one in found]
    body = "".join(
        f"<tr>{cell(link(one))}{cell(html.escape(one.time))}{cell(html.escape(one.counts))}</tr>" for one in found
    )
    head = "".join(f'<th scope="col" style="text-align:left">{word}</th>' for word in HEADINGS)
    return Table(rows, f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def link(one: Entry) -> str:
    """Return a link from one chapter's notebook to another's."""
    return f'<a href="../{one.chapter}/{one.chapter}.ipynb">{html.escape(one.title)}</a>'


def cell(content: str) -> str:
    """Return a cell of a table for a notebook, which would center it."""
    return f'<td style="text-align:left">{content}</td>'


def progress_table(course: Path | None = None) -> Table:
    """Return how far the learner is in every chapter, as of the last time each notebook was saved."""
    root = here() if course is None else course
    if root is None:
        return Table([(NOT_HERE,)], f"<p>{NOT_HERE}</p>")
    found = progress(root)
    return Table(course_rows(found), course_html(found))


def here() -> Path | None:
    """Return the course's folder at or above the working folder, or None."""
    try:
        return find_course(Path.cwd())
    except CourseNotFound:
        return None
