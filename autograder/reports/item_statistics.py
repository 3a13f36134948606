"""How hard each exercise was, and how well it tells the class apart."""

from dataclasses import dataclass

import numpy as np

from autograder.grading.results import ClassResult, ExerciseResult

FEW_STUDENTS = 5  # with fewer, a correlation says nothing


@dataclass(frozen=True)
class Item:
    """One exercise over the class.

    Args:
        name: The exercise.
        maximum: Its points.
        facility: The mean share of the points, from 0 (nobody has any) to 1 (everybody has all), over the answers
            that do not wait for a person; None where all wait.
        discrimination: The correlation of its points with the points of all other exercises, from -1 to 1; None
            where it says nothing: few students, or everybody has the same.
        full: How many students have all points.
        none: How many have none, and do not wait for a person.
        waiting: How many answers wait for a person.
        median_seconds: The median time of its checks.
        slowest_seconds: The longest time of its checks.
        slowest_student: Whose it was.
    """

    name: str
    maximum: float
    facility: float | None
    discrimination: float | None
    full: int
    none: int
    waiting: int
    median_seconds: float | None
    slowest_seconds: float | None
    slowest_student: str


def items(result: ClassResult) -> list[Item]:
    """Return a row for each exercise of the chapter, over the submissions that could be graded."""
    graded = {name: one for name, one in result.students.items() if one.status != "failed"}
    names = list(dict.fromkeys(exercise for one in graded.values() for exercise in one.exercises))
    return [item(name, {who: one.exercises for who, one in graded.items() if name in one.exercises}) for name in names]


def item(name: str, students: dict[str, dict[str, ExerciseResult]]) -> Item:
    """Return one exercise's row."""
    own = [exercises[name] for exercises in students.values()]
    points = np.array([one.points for one in own])
    read = [one.points for one in own if one.status != "needs_manual"]
    others = np.array([sum(one.points for other, one in e.items() if other != name) for e in students.values()])
    maximum = own[0].maximum
    timed = {who: exercises[name].seconds for who, exercises in students.items()}
    seconds = {who: value for who, value in timed.items() if value is not None}
    slowest = max(seconds, key=seconds.__getitem__) if seconds else ""
    return Item(
        name=name,
        maximum=maximum,
        facility=float(np.mean(read) / maximum) if read and maximum else None,
        discrimination=correlation(points, others),
        full=int((points >= maximum).sum()),
        none=sum(value == 0 for value in read),
        waiting=sum(one.status == "needs_manual" for one in own),
        median_seconds=float(np.median(list(seconds.values()))) if seconds else None,
        slowest_seconds=seconds.get(slowest),
        slowest_student=slowest,
    )


def correlation(points: np.ndarray, others: np.ndarray) -> float | None:
    """Return Pearson's correlation, or None where it says nothing."""
    if len(points) < FEW_STUDENTS or np.ptp(points) == 0 or np.ptp(others) == 0:
        return None
    return float(np.corrcoef(points, others)[0, 1])
