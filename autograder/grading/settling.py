"""Bring results up to the gradebook, where a person may have given points since."""

from collections.abc import Mapping
from dataclasses import replace

from autograder.grading.cells import GradedCell
from autograder.grading.results import ExerciseResult, StudentResult, overall_status
from autograder.grading.verdicts import AWAITS_PERSON, Score


def settle_submission(
    result: StudentResult, graded: list[GradedCell], scores: Mapping[str, Score], penalty: float
) -> None:
    """Bring a submission's points, status and late penalty up to the gradebook.

    Where nothing could be graded, points that a person gave for an earlier submission count only once they are
    resolved: an old score must not stand for a newer submission that failed.
    """
    if result.status == "failed":
        scores = {name: score if not score.needs_person else Score(0.0, True) for name, score in scores.items()}
    result.exercises = settled(result.exercises, graded, scores)
    result.status = overall_status(result.exercises)
    result.penalty = penalty


def settled(
    exercises: Mapping[str, ExerciseResult], graded: list[GradedCell], scores: Mapping[str, Score]
) -> dict[str, ExerciseResult]:
    """Return the exercises with the points that stand, and with `needs_manual` where a person is awaited."""
    marks: dict[str, list[GradedCell]] = {}
    for mark in graded:
        marks.setdefault(mark.exercise, []).append(mark)
    return {
        name: settle(result, [scores[mark.grade_id] for mark in marks.get(name, []) if mark.grade_id in scores])
        for name, result in exercises.items()
    }


def settle(result: ExerciseResult, rows: list[Score]) -> ExerciseResult:
    """Return one exercise's result with the points of its rows."""
    status, message = result.status, result.message
    if status in ("graded", "needs_manual"):
        status = "needs_manual" if any(row.needs_person for row in rows) else "graded"
    if status == "needs_manual" and message is None:
        message = AWAITS_PERSON
    if status == "graded" and message == AWAITS_PERSON:
        message = None
    return replace(result, points=sum(row.points for row in rows), status=status, message=message)
