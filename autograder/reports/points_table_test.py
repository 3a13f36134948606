"""The class's points on the terminal."""

from rich.console import Console

from autograder.grading.results import ClassResult, ExerciseResult, StudentResult
from autograder.reports.points_table import misconception_counts, notes, points_table

CLASS = ClassResult(
    "01_tiny",
    {
        "[ada]": StudentResult("graded", exercises={"double": ExerciseResult(3, 3)}),
        "bea": StudentResult(
            "needs_manual",
            repairs=["A cell was put back."],
            exercises={
                "double": ExerciseResult(1, 3, misconception="squared"),
                "why": ExerciseResult(0, 2, "needs_manual"),
            },
        ),
        "cem": StudentResult(
            "failed", warnings=["Not JSON."], exercises={"double": ExerciseResult(0, 3, "failed", "squared")}
        ),
    },
)


def printed(width: int) -> list[str]:
    """Return the table's lines on a terminal of this width."""
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(points_table(CLASS))
    return capture.get().splitlines()


def line_of(student: str) -> str:
    """Return the line of a student."""
    return next(line for line in printed(120) if student in line)


def test_full_marks_list_no_exercise_and_brackets_in_a_name_survive() -> None:
    assert line_of("[ada]").split() == ["[ada]", "graded", "3/3"]


def test_lost_points_name_the_exercise_and_its_reason() -> None:
    assert "double* 1/3" in line_of("bea")
    assert "why? 0/2" in line_of("bea")


def test_a_submission_without_any_point_is_summed_up() -> None:
    assert line_of("cem").split() == ["cem", "failed", "0/3", "all"]


def test_the_table_fits_a_narrow_terminal() -> None:
    assert max(len(line) for line in printed(80)) <= 80


def test_warnings_and_repairs_carry_the_student() -> None:
    assert list(notes(CLASS)) == ["bea: A cell was put back.", "cem: Not JSON."]


def test_a_late_penalty_is_taken_off_and_told() -> None:
    late = ClassResult("01_tiny", {"dov": StudentResult("graded", [], [], {"double": ExerciseResult(3, 3)}, 0.3)})
    console = Console(width=80, color_system=None)
    with console.capture() as capture:
        console.print(points_table(late))
    assert "2.7/3" in capture.get()
    assert list(notes(late)) == ["dov: 0.3 of 3 points are taken off for handing in late."]


def test_misconceptions_are_counted_over_the_class() -> None:
    assert misconception_counts(CLASS) == [("double", "squared", 2)]
