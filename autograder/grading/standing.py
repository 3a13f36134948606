"""What stands now: a chapter's results with the points that the gradebook holds, where a person may have graded since.

Everything that shows points reads them here, so that no two pages differ. Only `course grade` writes results.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import Assignment, BaseCell, Grade, Gradebook, Student, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import select
from sqlalchemy.engine import make_url

from autograder.grading.cells import graded_cells
from autograder.grading.events import run_log
from autograder.grading.gradebook import points_of
from autograder.grading.results import ClassResult, read_results
from autograder.grading.settling import settle_submission
from autograder.grading.stock import StockCourse
from autograder.grading.verdicts import Score


@dataclass
class Held:
    """What the gradebook holds of one submission: its rows by grade_id, and the points taken off for being late."""

    scores: dict[str, Score] = field(default_factory=dict)
    penalty: float = 0.0


@dataclass
class Standing:
    """A chapter's results as they stand.

    Args:
        result: The results.
        known: Everybody whom the gradebook knows, with a submission or without.
    """

    result: ClassResult
    known: set[str] = field(default_factory=set)


def standing(course: Path, chapter: str, database: str | None = None) -> Standing:
    """Return the chapter's results brought up to the gradebook; as they were written where there is none.

    Args:
        course: The course's folder.
        chapter: The chapter.
        database: The gradebook's URL, in place of the configured one.

    Raises:
        CourseError: The results file is damaged, or the gradebook cannot be read.
    """
    result = read_results(course, chapter)
    stock = StockCourse(course, chapter, run_log(chapter), database)
    file = make_url(stock.folder.db_url).database or ""
    if not stock.source.is_file() or (stock.folder.db_url.startswith("sqlite") and not Path(file).is_file()):
        return Standing(result)
    marks = graded_cells(nbformat.read(stock.source, as_version=nbformat.NO_CONVERT))
    with stock.gradebook() as book:
        found = held(book, chapter)
        known = set(book.db.scalars(select(Student.id)))
    for student, one in result.students.items():
        if student in found:
            settle_submission(one, marks, found[student].scores, found[student].penalty)
    return Standing(result, known)


def held(book: Gradebook, chapter: str) -> dict[str, Held]:
    """Return what the gradebook holds of everybody's submission, in two queries."""
    # Any, for a type checker takes nbgrader's columns for what they hold
    assignment: Any = Assignment
    submitted: Any = SubmittedAssignment
    notebook: Any = SubmittedNotebook
    penalties = (
        select(submitted.student_id, notebook.late_submission_penalty)
        .join(notebook, notebook.assignment_id == submitted.id)
        .join(assignment, submitted.assignment_id == assignment.id)
        .where(assignment.name == chapter)
    )
    found = {student: Held(penalty=float(penalty or 0.0)) for student, penalty in book.db.execute(penalties)}
    rows = (
        select(
            submitted.student_id,
            BaseCell.name,
            Grade.auto_score,
            Grade.manual_score,
            Grade.extra_credit,
            Grade.needs_manual_grade,
        )
        .join(notebook, Grade.notebook_id == notebook.id)
        .join(submitted, notebook.assignment_id == submitted.id)
        .join(assignment, submitted.assignment_id == assignment.id)
        .join(BaseCell, Grade.cell_id == BaseCell.id)
        .where(assignment.name == chapter)
    )
    for row in book.db.execute(rows):
        found[row.student_id].scores[row.name] = Score(points_of(row), bool(row.needs_manual_grade))
    return found
