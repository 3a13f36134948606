"""Results brought up to the gradebook."""

import pytest

from autograder.grading.cells import GradedCell
from autograder.grading.results import ExerciseResult, StudentResult
from autograder.grading.settling import settle_submission
from autograder.grading.verdicts import Score

MARKS = [GradedCell("why", "why", 4.0, True)]


@pytest.mark.parametrize(
    ("status", "resolved", "points"),
    [("failed", False, 0.0), ("failed", True, 3.0), ("graded", False, 3.0), ("graded", True, 3.0)],
)
def test_points_for_an_earlier_submission_do_not_stand_for_one_that_failed(
    status: str, resolved: bool, points: float
) -> None:
    exercise = ExerciseResult(0.0, 4.0, status, None, None, None, None)  # type: ignore[arg-type]
    result = StudentResult(status, [], [], {"why": exercise})  # type: ignore[arg-type]
    settle_submission(result, MARKS, {"why": Score(3.0, not resolved)}, 0.0)
    assert result.exercises["why"].points == points
