"""Points are explained in words, and every kind of loss has its reason."""

import pytest

from autograder.errors import CourseError
from autograder.grading.results import ClassResult, ExerciseResult, StudentResult
from autograder.reports.why import reasons

RESULT = ClassResult(
    "01_tiny",
    {
        "ada": StudentResult(
            "needs_manual",
            ["The cell double-test was there more than once; only one of them is graded."],
            ["Handed in 12 minutes late."],
            {
                "double": ExerciseResult(1, 3, misconception="squared", message="Not yet.\nIt is squared.", seed=7),
                "triple": ExerciseResult(3, 3, seed=8),
                "why": ExerciseResult(0, 2, status="needs_manual", message="awaits"),
                "lost": ExerciseResult(0, 1, status="failed", message="There is no verdict."),
                "read": ExerciseResult(1, 2),
                "given": ExerciseResult(2, 2, misconception="squared", message="It is squared.", seed=9),
            },
        )
    },
)


def told(exercise: str | None = None, student: str = "ada") -> str:
    """Return the explanation as one text."""
    return "\n".join(reasons(RESULT, student, exercise))


def test_a_submission_is_explained_as_a_whole() -> None:
    text = told()
    assert text.startswith("ada, 01_tiny: 7 of 13 points.")
    for words in ("12 minutes late", "more than once", "double: 1 of 3", "triple: 3 of 3 points. Everything"):
        assert words in text


def test_a_late_penalty_is_explained() -> None:
    late = ClassResult("01_tiny", {"dov": StudentResult("graded", [], [], {"double": ExerciseResult(3, 3)}, 0.3)})
    text = "\n".join(reasons(late, "dov"))
    assert text.startswith("dov, 01_tiny: 2.7 of 3 points.")
    assert "Note: 0.3 of 3 points are taken off for handing in late." in text


@pytest.mark.parametrize(
    ("exercise", "words"),
    [
        ("double", ["Some checks passed", "squared.", "Not yet.", "check(double, hidden=True, seed=7)"]),
        ("why", ["A person has yet to read it"]),
        ("lost", ["could not be judged", "There is no verdict."]),
        ("read", ["A person gave these points"]),
    ],
)
def test_each_kind_of_loss_has_its_reason(exercise: str, words: list[str]) -> None:
    text = told(exercise)
    assert text.startswith(f"{exercise}: ")
    assert all(word in text for word in words)


def test_full_marks_name_no_seed_to_try_again() -> None:
    assert "seed" not in told("triple")


def test_full_marks_that_a_person_gave_are_told_as_such() -> None:
    assert told("given") == "given: 2 of 2 points. A person gave these points."


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(CourseError, match="did you mean ada"):
        told(student="adda")
    with pytest.raises(CourseError, match="did you mean double"):
        told("duoble")
