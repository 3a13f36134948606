"""The page that a student gets back: points and reasons first, then the notebook; it needs no network and no script.

nbgrader makes it: nbgrader_config.py names `FeedbackPage` and `GetPoints`, so `course grade`, `course feedback` and
plain `nbgrader generate_feedback` all give the same page.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from nbconvert.exporters import Exporter
from nbformat import NotebookNode
from nbgrader.preprocessors import GetGrades

from autograder.grading.cells import exercise_of, gives_points, graded_cells
from autograder.grading.noting import notes_of
from autograder.grading.results import ExerciseResult
from autograder.grading.verdicts import Score, exercise_results
from autograder.reports.notebook_html import cell_html
from autograder.reports.safe_html import anchor

FENCED = re.compile(r"(?ms)^```.*?^```$")  # code that is shown; its comments are no headings
BETWEEN_BACKTICKS = re.compile(r"`([^`\n]+)`")
WAITS = "waits for a person"
UNANSWERED = "This was handed in without an answer."
TEMPLATES = Path(__file__).parent / "templates"


@dataclass
class Row:
    """One exercise in the summary.

    Args:
        link: The heading in the page to read again, or the exercise's first graded cell.
        outcome: The result in a word or two.
        lines: What the check said, in the tutor's words.
        comments: What a person wrote.
    """

    name: str
    link: str
    points: float
    maximum: float
    outcome: str
    lines: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)


class GetPoints(GetGrades):
    """nbgrader's step that puts points and comments into the notebook; it also notes what still awaits a person."""

    def _get_comment(self, cell: NotebookNode, resources: Any) -> None:
        """Keep a person's words apart from nbgrader's own, which only ever say that nothing was answered."""
        mark = cell.metadata.nbgrader
        comment = self.gradebook.find_comment(mark["grade_id"], self.notebook_id, self.assignment_id, self.student_id)
        mark["comment"], mark["unanswered"] = comment.manual_comment, bool(comment.auto_comment)

    def _get_score(self, cell: NotebookNode, resources: Any) -> None:
        super()._get_score(cell, resources)
        grade = self.gradebook.find_grade(
            cell.metadata.nbgrader["grade_id"], self.notebook_id, self.assignment_id, self.student_id
        )
        cell.metadata.nbgrader["needs_person"] = bool(grade.needs_manual_grade)


class FeedbackPage(Exporter):
    """nbconvert's exporter for a feedback page; nbgrader has put points and comments into the cells' metadata."""

    file_extension = ".html"
    output_mimetype = "text/html"

    def from_notebook_node(
        self, nb: NotebookNode, resources: Any = None, **arguments: Any
    ) -> tuple[str, dict[str, Any]]:
        """Return the page of one graded notebook."""
        notebook, resources = super().from_notebook_node(nb, resources, **arguments)
        return page(notebook, resources.get("nbgrader", {})), resources


def page(notebook: NotebookNode, about: Mapping[str, Any]) -> str:
    """Return the page of a notebook that nbgrader has put points into.

    Args:
        notebook: The graded notebook.
        about: What nbgrader knows of the submission: student, assignment, score, max_score, late_penalty.
    """
    rows = list(summary(notebook))
    template = environment().get_template("feedback.html.j2")
    return template.render(
        title=notebook.metadata.get("title", about.get("assignment", "Feedback")),
        student=about.get("student", ""),
        score=about.get("score", sum(row.points for row in rows)),
        maximum=about.get("max_score", sum(row.maximum for row in rows)),
        penalty=about.get("late_penalty", 0.0),
        waiting=sum(row.maximum - row.points for row in rows if row.outcome == WAITS),
        notes=notes_of(notebook),
        rows=rows,
        cells=list(shown_cells(notebook)),
    )


def summary(notebook: NotebookNode) -> Iterator[Row]:
    """Yield one row for each exercise, in the notebook's order."""
    marks = [cell.metadata.nbgrader for cell in notebook.cells if gives_points(cell)]
    scores = {
        mark["grade_id"]: Score(float(mark.get("score") or 0.0), bool(mark.get("needs_person"))) for mark in marks
    }
    headings = headings_of(notebook)
    for name, result in exercise_results(notebook, graded_cells(notebook), scores, cell_timeout=None).items():
        yield Row(
            name=name,
            link=headings.get(name, cell_anchor(name)),
            points=result.points,
            maximum=result.maximum,
            outcome=outcome(result),
            lines=lines_for_the_student(result, is_unanswered(name, notebook)),
            comments=comments_on(name, notebook),
        )


def lines_for_the_student(result: ExerciseResult, unanswered: bool) -> list[str]:
    """Return what the check said; nothing where all is well, or where a person has the word."""
    if result.points >= result.maximum or result.status == "needs_manual":
        return []
    return (result.message or (UNANSWERED if unanswered else "")).splitlines()


def outcome(result: ExerciseResult) -> str:
    """Return how an exercise went, in words that need no color."""
    if result.status == "needs_manual":
        return WAITS
    if result.points >= result.maximum:
        return "complete"
    return "partly" if result.points > 0 else "no points yet"


def comments_on(exercise: str, notebook: NotebookNode) -> list[str]:
    """Return what a person wrote about an exercise's cells."""
    marked = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("comment")]
    return [cell.metadata.nbgrader["comment"] for cell in marked if exercise_of(cell) == exercise]


def is_unanswered(exercise: str, notebook: NotebookNode) -> bool:
    """Return whether an answer of the exercise is as it was handed out."""
    marked = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("unanswered")]
    return any(exercise_of(cell) == exercise for cell in marked)


def headings_of(notebook: NotebookNode) -> dict[str, str]:
    """Return for each exercise the anchor of the last heading before its first marked cell."""
    found: dict[str, str] = {}
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and "nbgrader" not in cell.metadata:
            lines = FENCED.sub("", cell.source).splitlines()
            titles = [line.lstrip("#").strip() for line in lines if line.startswith("#")]
            heading = anchor(titles[-1]) if titles else heading
        elif "nbgrader" in cell.metadata and heading:
            found.setdefault(exercise_of(cell), heading)
    return found


def shown_cells(notebook: NotebookNode) -> Iterator[tuple[str, str, Markup]]:
    """Yield each cell: its anchor if it is an exercise's first graded one, its points in words, and its HTML."""
    seen: set[str] = set()
    for cell in notebook.cells:
        link = points = ""
        if gives_points(cell):
            mark, exercise = cell.metadata.nbgrader, exercise_of(cell)
            maximum = float(mark.get("points") or 0.0)
            points = f"{float(mark.get('score') or 0.0):g} of {maximum:g} {'point' if maximum == 1 else 'points'}"
            link = "" if exercise in seen else cell_anchor(exercise)
            seen.add(exercise)
        yield link, points, Markup(cell_html(cell))


def cell_anchor(exercise: str) -> str:
    """Return the anchor of an exercise's first graded cell."""
    return f"cell-{exercise}"


@cache
def environment() -> Environment:
    """Return the templates; everything that is not marked as HTML is escaped."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"breakable": breakable, "code": with_code}
    return found


def breakable(name: str) -> Markup:
    """Return a name that may be broken behind its underscores, for a narrow page."""
    return escape(name).replace("_", Markup("_<wbr>"))


def with_code(text: str) -> Markup:
    """Return a sentence in which what stands between backticks is code."""
    return Markup(BETWEEN_BACKTICKS.sub(r"<code>\1</code>", str(escape(text))))
