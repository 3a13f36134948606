"""Say in words why a student's points are what they are."""

import difflib
from collections.abc import Iterator

from autograder.errors import CourseError
from autograder.grading.results import ClassResult, ExerciseResult, StudentResult

STATUS_SENTENCES = {
    "graded": "Everything was graded.",
    "partly": "Some of it could not be graded.",
    "failed": "Nothing of it could be graded.",
    "needs_manual": "A person has yet to read an answer.",
}


def reasons(result: ClassResult, student: str, exercise: str | None = None) -> Iterator[str]:
    """Yield sentences about one submission, or about one exercise of it.

    Args:
        result: The chapter's results.
        student: Whose submission.
        exercise: One exercise; None for all.

    Raises:
        CourseError: There is no result for this student, or no such exercise.
    """
    found = named(result.students, student, f"result of {result.chapter} for the student")
    if exercise is not None:
        yield from of_exercise(exercise, named(found.exercises, exercise, "exercise"))
        return
    points = f"{found.standing:g} of {found.maximum:g} points"
    yield f"{student}, {result.chapter}: {points}. {STATUS_SENTENCES[found.status]}"
    yield from of_submission(found)
    for name, one in found.exercises.items():
        yield from of_exercise(name, one)


def of_submission(found: StudentResult) -> Iterator[str]:
    """Yield what was mended and noticed."""
    yield from (f"Note: {warning}" for warning in found.noticed)
    yield from (f"Mended: {repair}" for repair in found.repairs)


def of_exercise(name: str, found: ExerciseResult) -> Iterator[str]:
    """Yield the points of an exercise and their reason."""
    yield f"{name}: {found.points:g} of {found.maximum:g} points. {because(found)}"
    if found.points >= found.maximum and found.status == "graded":
        return  # what a check said before a person gave all points explains nothing
    if found.misconception is not None:
        yield f"  A known misconception: {found.misconception}."
    if found.message is not None and found.status != "needs_manual":
        yield from (f"  {line}" for line in found.message.splitlines())
    told = "seed=" in (found.message or "")
    if found.seed is not None and found.points < found.maximum and not told:
        yield f"  The same inputs again, in the notebook: check({name}, hidden=True, seed={found.seed})"


def because(found: ExerciseResult) -> str:
    """Return the reason for an exercise's points in a sentence."""
    if found.status == "needs_manual":
        return "A person has yet to read it; grade it in formgrader."
    if found.status == "failed":
        return "It could not be judged:"
    if found.status == "partly":
        return "Part of it could not be judged:"
    if found.points >= found.maximum:
        return "Everything that was asked holds." if found.message is None else "A person gave these points."
    if found.message is None:
        return "A person gave these points, or the answer is as it was handed out."
    return "A check did not pass:" if found.points == 0 else "Some checks passed; one did not:"


def named(table: dict, name: str, what: str):
    """Return an entry of a table.

    Raises:
        CourseError: There is none of this name; the sentence names the nearest.
    """
    if name in table:
        return table[name]
    close = difflib.get_close_matches(name, table, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(table) or 'none'}."
    raise CourseError(f"There is no {what} {name!r}; {hint}")
