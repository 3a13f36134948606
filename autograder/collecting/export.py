"""A chapter's points as a file that an LMS or a spreadsheet takes."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.collecting.record import recall
from autograder.collecting.roster import ROSTER, Roster, Student, read_roster
from autograder.collecting.whole import draft_of
from autograder.errors import CourseError
from autograder.grading.results import results_path
from autograder.grading.standing import standing

SYSTEMS = ("csv", "canvas", "moodle", "gradescope")
STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")
DIGITS = 4  # after the point
Table = list[list[str | float]]


class Key(str):
    """A text by which an LMS finds the student: one more sign in it, and the points reach nobody."""


@dataclass
class Row:
    """One student's points in a chapter.

    Args:
        student: Who it is.
        points: The points that stand, a person's and the penalty counted in; None where nothing was handed in.
        maximum: What there was to get.
        penalty: The points taken off for being late.
        status: graded, partly, failed, needs_manual or missing.
        exercises: The points by exercise.
        late: Whether the LMS marked it late.
    """

    student: Student
    points: float | None
    maximum: float
    penalty: float = 0.0
    status: str = "missing"
    exercises: dict[str, float] = field(default_factory=dict)
    late: bool = False


def export(course: Path, chapter: str, system: str, out: Path | None = None, database: str | None = None) -> Path:
    """Write a chapter's points for one system; return the file.

    Raises:
        CourseError: the system is not known, or the chapter has no results yet.
    """
    if system not in TABLES:
        raise CourseError(f"--to {system}: choose one of {', '.join((*SYSTEMS, 'gradescope-autograder'))}.")
    if not results_path(course, chapter).is_file():
        raise CourseError(f"There are no results of {chapter} yet; `course grade {chapter}` makes them.")
    rows = rows_of(course, chapter, database)
    name = f"{chapter}.csv" if system == "csv" else f"{chapter}.{system}.csv"
    target = out or course / "results" / name
    with draft_of(target) as draft:
        # Excel takes a file without a byte-order mark for text of another age; an LMS would take the mark for a name.
        encoding = "utf-8-sig" if system == "csv" else "utf-8"
        draft.write_text(as_text(TABLES[system](chapter, rows)), encoding=encoding, newline="")
    return target


def rows_of(course: Path, chapter: str, database: str | None = None) -> list[Row]:
    """Return everybody's points from the gradebook, also those of the roster who handed nothing in."""
    result = standing(course, chapter, database).result
    roster = read_roster(course / ROSTER) if (course / ROSTER).is_file() else Roster()
    maximum = max((one.maximum for one in result.students.values()), default=0.0)
    rows, known = [], recall(course, chapter)
    for name in sorted({*result.students, *roster.students}):
        student = roster.students.get(name, Student(name))
        found = result.students.get(name)
        if found is None:
            rows.append(Row(student, None, maximum))
            continue
        exercises = {exercise: one.points for exercise, one in found.exercises.items()}
        late = name in known and known[name].late
        rows.append(Row(student, found.standing, found.maximum, found.penalty, found.status, exercises, late))
    return rows


def plain_table(chapter: str, rows: Sequence[Row]) -> Table:
    """Return all there is to know, for a spreadsheet."""
    exercises = list(dict.fromkeys(name for row in rows for name in row.exercises))
    header: list[str | float] = [
        "id",
        "last_name",
        "first_name",
        "email",
        "status",
        "points",
        "maximum",
        "late_penalty",
        "late_in_lms",
    ]
    table: Table = [[*header, *exercises]]
    for row in rows:
        who = row.student
        known: list[str | float] = [who.id, who.last_name, who.first_name, who.email, row.status]
        numbers: list[str | float] = [shown(row.points), row.maximum, row.penalty]
        table.append(
            [*known, *numbers, "yes" if row.late else "", *(row.exercises.get(name, "") for name in exercises)]
        )
    return table


def canvas_table(chapter: str, rows: Sequence[Row]) -> Table:
    """Return what Canvas imports into its gradebook: a row with the points possible, then one for each student."""
    maximum = max((row.maximum for row in rows), default=0.0)
    header: list[str | float] = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", chapter]
    table: Table = [header, ["    Points Possible", "", "", "", "", maximum]]
    for row in rows:
        who = row.student
        keys = (Key(who.lms_user_id), Key(who.id), Key(who.username))
        table.append([last_first(who), *keys, "", shown(row.points)])
    return table


def moodle_table(chapter: str, rows: Sequence[Row]) -> Table:
    """Return what Moodle's grade import maps: ID number, email address, the grade."""
    table: Table = [["ID number", "Email address", "First name", "Last name", chapter]]
    for row in rows:
        who = row.student
        table.append([Key(who.id), Key(who.email), who.first_name, who.last_name, shown(row.points)])
    return table


def gradescope_table(chapter: str, rows: Sequence[Row]) -> Table:
    """Return the columns of Gradescope's own list of scores."""
    table: Table = [["First Name", "Last Name", "SID", "Email", "Total Score", "Max Points", "Status"]]
    for row in rows:
        who, status = row.student, "Missing" if row.points is None else "Graded"
        known: list[str | float] = [who.first_name, who.last_name, Key(who.id), Key(who.email)]
        table.append([*known, shown(row.points), row.maximum, status])
    return table


TABLES: dict[str, Callable[[str, Sequence[Row]], Table]] = {
    "csv": plain_table,
    "canvas": canvas_table,
    "moodle": moodle_table,
    "gradescope": gradescope_table,
}


def shown(points: float | None) -> str | float:
    """Return points for a cell; nothing where nothing was handed in, which is no zero."""
    return "" if points is None else points


def last_first(student: Student) -> str:
    """Return a name as Canvas lists it."""
    if student.last_name and student.first_name:
        return f"{student.last_name}, {student.first_name}"
    return student.full_name or student.id


def as_text(table: Table) -> str:
    """Return a table as CSV: every text is quoted, none but a key is a formula, and numbers are rounded."""
    stream = io.StringIO()
    writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerows([harmless(cell) for cell in row] for row in table)
    return stream.getvalue()


def harmless(cell: str | float) -> str | float:
    """Return a cell that no spreadsheet takes for a formula; a key stays as it is."""
    if not isinstance(cell, str):
        return round(cell, DIGITS)
    return f"'{cell}" if cell.startswith(STARTS_A_FORMULA) and not isinstance(cell, Key) else cell
