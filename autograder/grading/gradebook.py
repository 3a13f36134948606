"""The one writer of nbgrader's gradebook: one transaction for a submission, and a line for every changed grade."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from nbgrader.api import (
    Assignment,
    Comment,
    Grade,
    Gradebook,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy import select
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from traitlets.config import Config

from autograder.errors import CourseError
from autograder.grading.database import be_patient, words
from autograder.grading.verdicts import Score
from autograder.grading.writing import append

TRIES = 4
SECONDS_BETWEEN_TRIES = 1.0
LATE_PENALTY = "late penalty"  # in place of a cell's name in a line about a change
Result = TypeVar("Result")


@dataclass
class Written:
    """What the gradebook holds of one submission after it was recorded.

    Args:
        scores: The points that stand, by grade_id: a person's where there are any.
        late: Seconds after the due date.
        comments: The comments that stand, by grade_id.
        penalty: The points taken off for being late.
    """

    scores: dict[str, Score]
    late: float = 0.0
    comments: dict[str, str] = field(default_factory=dict)
    penalty: float = 0.0


class GradebookWriter:
    """One chapter of the gradebook, open for a whole run and used from one thread."""

    def __init__(self, gradebook: Gradebook, chapter: str, config: Config, changes: Path, log: logging.Logger):
        """Take over an open gradebook.

        Args:
            gradebook: nbgrader's gradebook.
            chapter: The chapter, which is assignment and notebook at once.
            config: nbgrader's configuration, for late penalties.
            changes: The file that gets a line for every changed grade.
            log: Where retries are noted.
        """
        self.book, self.chapter, self.changes, self.log = gradebook, chapter, changes, log
        self.db: Any = gradebook.db
        self.penalties = AssignLatePenalties(config=config, log=log)
        self.penalties.init_plugin()
        self._noted: list[str] = []
        be_patient(gradebook)

    def record(
        self,
        student: str,
        scores: Mapping[str, float | None] | None,
        unanswered: list[str] | None = None,
        timestamp: datetime | None = None,
        unchanged: Callable[[], Container[str]] = set,
    ) -> Written:
        """Write one submission's automatic points; a person's points and comments stay.

        Args:
            student: Whose submission it is.
            scores: Points by grade_id, None where a person decides; None in all withdraws what an earlier
                submission had scored.
            unanswered: Answer cells that are as they were handed out; None leaves the automatic comments alone.
            timestamp: When it was handed in (UTC), if that is known.
            unchanged: Tells the cells whose work is what it was; called only where a person gave points.

        Raises:
            CourseError: The gradebook cannot be written.
        """

        def work() -> Written:
            submission, notebook = self._submitted(student)
            if timestamp is not None:
                submission.timestamp = timestamp
            lines = self._write_grades(student, notebook, scores, unchanged)
            if unanswered is not None:
                self._write_comments(notebook, set(unanswered))
            self.db.flush()
            lines += self._write_penalty(student, submission, notebook)
            self.db.flush()  # holds the database's lock, so that the commit hardly fails
            self._note(lines)
            return self._read(submission, notebook)

        return self._transaction(work)

    def read(self, student: str) -> Written:
        """Return what the gradebook holds of one submission; nothing for a student it does not know."""

        def work() -> Written:
            submission = self._find(student)
            notebook = None if submission is None else self._notebook_of(submission)
            return Written({}) if notebook is None else self._read(submission, notebook)

        return self._transaction(work)

    def renew(self, student: str) -> Written:
        """Take off what being late costs now, for due date, policy and a person's points may have changed; read all."""

        def work() -> Written:
            submission = self._find(student)
            notebook = None if submission is None else self._notebook_of(submission)
            if notebook is None:
                return Written({})
            self._note(self._write_penalty(student, submission, notebook))
            return self._read(submission, notebook)

        return self._transaction(work)

    def automatic(self, student: str) -> dict[str, float | None]:
        """Return the automatic points that the gradebook holds of one submission."""

        def work() -> dict[str, float | None]:
            submission = self._find(student)
            notebook = None if submission is None else self._notebook_of(submission)
            rows = [] if notebook is None else self.db.scalars(select(Grade).filter_by(notebook_id=notebook.id))
            return {row.cell.name: row.auto_score for row in rows}

        return self._transaction(work)

    def _transaction(self, work: Callable[[], Result]) -> Result:
        """Do all of the work or none of it; wait and try again while another program holds the database."""
        for attempt in range(1, TRIES + 1):
            try:
                self.db.expire_all()
                result = work()
                self.db.commit()
                return result
            except OperationalError as error:
                self.db.rollback()
                if attempt == TRIES:
                    said = words(error)
                    advice = "make room and run it again" if "full" in said else "run it again"
                    raise CourseError(f"The gradebook cannot be used: {said}; {advice}.") from error
                self.log.warning("The gradebook does not answer (%s); trying again.", words(error))
                time.sleep(SECONDS_BETWEEN_TRIES)
            except SQLAlchemyError as error:
                self.db.rollback()
                raise CourseError(f"The gradebook does not fit {self.chapter}: {words(error)}.") from error
            except BaseException:
                self.db.rollback()
                raise
        raise AssertionError("unreachable")

    def _assignment(self) -> tuple[Assignment, Notebook]:
        assignment = self.db.scalars(select(Assignment).filter_by(name=self.chapter)).one()
        notebook = self.db.scalars(select(Notebook).filter_by(name=self.chapter, assignment_id=assignment.id)).one()
        return assignment, notebook

    def _find(self, student: str) -> SubmittedAssignment | None:
        assignment, _ = self._assignment()
        query = select(SubmittedAssignment).filter_by(assignment_id=assignment.id, student_id=student)
        return self.db.scalars(query).one_or_none()

    def _notebook_of(self, submission: SubmittedAssignment) -> SubmittedNotebook | None:
        _, notebook = self._assignment()
        query = select(SubmittedNotebook).filter_by(assignment_id=submission.id, notebook_id=notebook.id)
        return self.db.scalars(query).one_or_none()

    def _submitted(self, student: str) -> tuple[Any, Any]:  # rows, whose columns a type checker takes for Columns
        """Return the student's submission, made first where it is new."""
        if self.db.get(Student, student) is None:
            self.db.add(Student(id=student))
        submission = self._find(student)
        if submission is None:
            submission = SubmittedAssignment(assignment=self._assignment()[0], student_id=student)
            self.db.add(submission)
            self.db.flush()
        notebook = self._notebook_of(submission)
        if notebook is None:
            notebook = SubmittedNotebook(notebook=self._assignment()[1], assignment=submission)
            self.db.add(notebook)
            self.db.flush()
        return submission, notebook

    def _rows(self, kind: Any, notebook: SubmittedNotebook, cells: list[Any]) -> Iterator[tuple[str, Any]]:
        """Yield the notebook's rows of one table with their cells' names; what is missing is made."""
        there = {row.cell_id: row for row in self.db.scalars(select(kind).filter_by(notebook_id=notebook.id))}
        for cell in cells:
            row = there.get(cell.id)
            if row is None:
                row = kind(cell_id=cell.id, notebook=notebook)
                self.db.add(row)
            yield cell.name, row

    def _write_grades(
        self,
        student: str,
        submitted: SubmittedNotebook,
        scores: Mapping[str, float | None] | None,
        unchanged: Callable[[], Container[str]],
    ) -> list[str]:
        notebook, known = self._assignment()[1], cache(unchanged)
        lines = []
        for name, row in self._rows(Grade, submitted, [*notebook.grade_cells, *notebook.task_cells]):
            before = {"auto_score": row.auto_score, "needs_manual_grade": bool(row.needs_manual_grade)}
            row.auto_score = None if scores is None else scores.get(name)
            # As nbgrader has it: what a person graded before is looked at again, here only when it is new.
            seen = row.manual_score is not None and not row.needs_manual_grade and name in known()
            row.needs_manual_grade = not seen and (row.auto_score is None or row.manual_score is not None)
            after = {"auto_score": row.auto_score, "needs_manual_grade": row.needs_manual_grade}
            if before != after and not (before["auto_score"] is None and row.auto_score is None and row.id is None):
                kept = {"manual_score": row.manual_score, "extra_credit": row.extra_credit}
                line = {"student": student, "chapter": self.chapter, "cell": name, "before": before, "after": after}
                lines.append(json.dumps(line | {"kept": kept}, ensure_ascii=False))
        return lines

    def _write_comments(self, submitted: SubmittedNotebook, unanswered: set[str]) -> None:
        notebook = self._assignment()[1]
        for name, row in self._rows(Comment, submitted, [*notebook.solution_cells, *notebook.task_cells]):
            row.auto_comment = "No response." if name in unanswered else None

    def _write_penalty(self, student: str, submission: Any, notebook: Any) -> list[str]:
        """Let the course's late penalty decide, as nbgrader does; return the line of its change, if it changed."""
        penalty, late = None, submission.total_seconds_late
        if late > 0:
            score = sum(row.points for row in self._read(submission, notebook).scores.values())
            plugin: Any = self.penalties.plugin_inst
            penalty = plugin.late_submission_penalty(student, score, late)
            penalty = None if penalty is None else min(max(penalty, 0), score)
        before = notebook.late_submission_penalty
        if before == penalty:
            return []
        notebook.late_submission_penalty = penalty
        line = {"student": student, "chapter": self.chapter, "cell": LATE_PENALTY}
        return [json.dumps(line | {"before": {LATE_PENALTY: before or 0.0}, "after": {LATE_PENALTY: penalty or 0.0}})]

    def _note(self, lines: list[str]) -> None:
        """Append the changes to their file before they are committed: a line too many, never one too few."""
        if lines and lines != self._noted:
            now = datetime.now().astimezone().isoformat(timespec="seconds")
            append(self.changes, "".join(f'{{"time": "{now}", {line[1:]}\n' for line in lines))
            self._noted = lines

    def _read(self, submission: SubmittedAssignment, submitted: SubmittedNotebook) -> Written:
        notebook = self._assignment()[1]
        grades = self._rows(Grade, submitted, [*notebook.grade_cells, *notebook.task_cells])
        scores = {name: Score(points_of(row), bool(row.needs_manual_grade)) for name, row in grades}
        comments = self._rows(Comment, submitted, [*notebook.solution_cells, *notebook.task_cells])
        said = {name: row.manual_comment or row.auto_comment or "" for name, row in comments}
        penalty: Any = submitted.late_submission_penalty
        return Written(scores, float(submission.total_seconds_late), said, float(penalty or 0.0))


def points_of(row: Any) -> float:
    """Return the points that stand: a person's before the automatic ones, and extra credit."""
    points = row.auto_score if row.manual_score is None else row.manual_score
    return 0.0 if points is None else float(points) + float(row.extra_credit or 0.0)
