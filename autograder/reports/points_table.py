"""The class's points as a table for the terminal."""

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from autograder.grading.results import ClassResult, ExerciseResult, StudentResult

STATUS_WORDS = {
    "graded": ("graded", "green"),
    "partly": ("partly graded", "yellow"),
    "failed": ("failed", "bold red"),
    "needs_manual": ("answer to read", "cyan"),
}
MARK_OF_MISCONCEPTION = "*"
MARK_OF_PERSON = "?"
LONGEST_STUDENT = 30  # characters in one line of the table


def points_table(result: ClassResult) -> Table:
    """Return one row per student: status, points that count, then each exercise that is not at full marks."""
    caption = f"{MARK_OF_MISCONCEPTION} a known misconception   {MARK_OF_PERSON} awaits a person"
    table = Table(title=f"Points of {result.chapter}", caption=caption, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("student", overflow="fold", max_width=LONGEST_STUDENT)
    table.add_column("status", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("exercises below full marks", overflow="fold")
    for name, student in result.students.items():
        words, style = STATUS_WORDS[student.status]
        table.add_row(
            Text(name),
            Text(words, style),
            points_of(student.standing, student.maximum),
            Text(lost_points(student)),
        )
    return table


def points_of(points: float, maximum: float) -> str:
    """Return points out of a maximum."""
    return f"{points:g}/{maximum:g}"


def lost_points(student: StudentResult) -> str:
    """Return the exercises that lost points, marked where a misconception or a person explains it."""
    lost = {name: exercise for name, exercise in student.exercises.items() if exercise.points < exercise.maximum}
    if lost and len(lost) == len(student.exercises) and not any(exercise.points for exercise in lost.values()):
        return "all"
    return ", ".join(
        f"{name}{mark(exercise)} {points_of(exercise.points, exercise.maximum)}" for name, exercise in lost.items()
    )


def mark(exercise: ExerciseResult) -> str:
    """Return the sign behind the name of an exercise."""
    if exercise.misconception is not None:
        return MARK_OF_MISCONCEPTION
    return MARK_OF_PERSON if exercise.status == "needs_manual" else ""


def notes(result: ClassResult) -> Iterable[str]:
    """Return a sentence for every warning and repair of the class."""
    for name, student in result.students.items():
        for sentence in (*student.noticed, *student.repairs):
            yield f"{name}: {sentence}"


def misconception_counts(result: ClassResult) -> list[tuple[str, str, int]]:
    """Return each misconception met (exercise, its name, how many students), the commonest first."""
    counts: dict[tuple[str, str], int] = {}
    for student in result.students.values():
        for name, exercise in student.exercises.items():
            if exercise.misconception is not None:
                counts[name, exercise.misconception] = counts.get((name, exercise.misconception), 0) + 1
    return sorted(((*key, number) for key, number in counts.items()), key=lambda row: (-row[2], row[0], row[1]))
