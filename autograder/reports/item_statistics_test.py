import numpy as np
import pytest

from autograder.grading.results import ClassResult, ExerciseResult, StudentResult
from autograder.reports.item_statistics import items

POINTS = {"a": (3.0, 1.0), "b": (3.0, 2.0), "c": (0.0, 0.0), "d": (1.5, 1.0), "e": (3.0, 2.0), "f": (0.0, 1.0)}


def class_of(points: dict[str, tuple[float, float]]) -> ClassResult:
    """Return a class with two exercises of 3 and 2 points."""
    result = ClassResult("01_tiny")
    for place, (student, (first, second)) in enumerate(points.items()):
        exercises = {
            "double": ExerciseResult(first, 3.0, seconds=0.1 * (place + 1)),
            "triple": ExerciseResult(second, 2.0),
        }
        result.students[student] = StudentResult("graded", exercises=exercises)
    return result


def test_the_share_is_the_mean_of_the_points() -> None:
    double, triple = items(class_of(POINTS))
    assert double.facility == pytest.approx(10.5 / 18)
    assert triple.facility == pytest.approx(7 / 12)
    assert (double.full, double.none) == (3, 2)


def test_discrimination_is_the_correlation_with_the_other_exercises() -> None:
    double, triple = items(class_of(POINTS))
    expected = np.corrcoef(*np.array(list(POINTS.values())).T)[0, 1]
    assert double.discrimination == pytest.approx(expected)
    assert triple.discrimination == pytest.approx(expected)


def test_discrimination_is_left_out_where_it_says_nothing() -> None:
    few = dict(list(POINTS.items())[:4])
    same = {name: (3.0, second) for name, (_, second) in POINTS.items()}
    assert [row.discrimination for row in (*items(class_of(few)), *items(class_of(same)))] == [None] * 4


def test_answers_that_wait_for_a_person_are_not_hard() -> None:
    result = class_of(POINTS)
    for student in result.students.values():
        student.exercises["triple"].status = "needs_manual"
    waiting = items(result)[1]
    assert waiting.facility is None
    assert waiting.waiting == len(POINTS)


def test_failed_submissions_do_not_count() -> None:
    result = class_of(POINTS)
    result.students["g"] = StudentResult("failed", exercises={"double": ExerciseResult(0.0, 3.0, status="failed")})
    assert items(result)[0] == items(class_of(POINTS))[0]


def test_the_slowest_check_has_a_name() -> None:
    double, triple = items(class_of(POINTS))
    assert (double.slowest_student, double.slowest_seconds) == ("f", pytest.approx(0.6))
    assert triple.slowest_seconds is None
