"""What grading a class gives, and its file `results/CHAPTER.json`.

`status` means the same for a submission and for an exercise in it: `graded` (a score stands), `partly` (some
of it could not be graded), `failed` (none of it could be; `warnings` or `message` has the reason) and
`needs_manual` (a written answer awaits a person).
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from autograder.errors import CourseError
from autograder.grading.writing import put

Status = Literal["graded", "partly", "failed", "needs_manual"]


@dataclass
class ExerciseResult:
    """One exercise of one submission: its points, and what the check said."""

    points: float
    maximum: float
    status: Status = "graded"
    misconception: str | None = None
    message: str | None = None
    seconds: float | None = None
    seed: int | None = None


@dataclass
class StudentResult:
    """One submission: what was mended in it, what is worth knowing, its exercises by name, and the late penalty."""

    status: Status
    repairs: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    exercises: dict[str, ExerciseResult] = field(default_factory=dict)
    penalty: float = 0.0

    @property
    def points(self) -> float:
        """Return the points of all exercises together."""
        return sum(exercise.points for exercise in self.exercises.values())

    @property
    def standing(self) -> float:
        """Return the points that count: those of all exercises, less what handing in late takes off."""
        return max(0.0, self.points - self.penalty)

    @property
    def noticed(self) -> list[str]:
        """Return the warnings, and what handing in late takes off."""
        late = f"{self.penalty:g} of {self.points:g} points are taken off for handing in late."
        return [*self.warnings, late] if self.penalty else self.warnings

    @property
    def maximum(self) -> float:
        """Return the points that all exercises together could give."""
        return sum(exercise.maximum for exercise in self.exercises.values())


@dataclass
class ClassResult:
    """A chapter's submissions by student."""

    chapter: str
    students: dict[str, StudentResult] = field(default_factory=dict)

    @property
    def has_problems(self) -> bool:
        """Return whether a submission could not be graded in whole."""
        return any(student.status in ("failed", "partly") for student in self.students.values())


def overall_status(exercises: dict[str, ExerciseResult]) -> Status:
    """Return the status of a submission whose exercises have theirs."""
    statuses = {exercise.status for exercise in exercises.values()}
    if statuses == {"failed"}:
        return "failed"
    if statuses & {"failed", "partly"}:
        return "partly"
    return "needs_manual" if "needs_manual" in statuses else "graded"


def results_path(course: Path, chapter: str) -> Path:
    """Return where the chapter's results lie."""
    return course / "results" / f"{chapter}.json"


def write_results(course: Path, result: ClassResult) -> Path:
    """Write the results in one step, so that a reader never meets half a file."""
    path = results_path(course, result.chapter)
    put(path, (json.dumps(asdict(result), indent=2, ensure_ascii=False) + "\n").encode("utf-8"))
    return path


def read_results(course: Path, chapter: str) -> ClassResult:
    """Read the chapter's results; without a file, an empty class.

    Raises:
        CourseError: the file is not in the shape that `write_results` gives it.
    """
    path = results_path(course, chapter)
    if not path.is_file():
        return ClassResult(chapter)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        students = {name: student_from(entry) for name, entry in content["students"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CourseError(f"{path} is damaged ({error}); delete it and grade again.") from error
    return ClassResult(chapter, students)


def student_from(entry: dict) -> StudentResult:
    """Return the submission that a JSON object describes."""
    exercises = {name: ExerciseResult(**exercise) for name, exercise in entry["exercises"].items()}
    penalty = float(entry.get("penalty", 0.0))  # which an older file does not have
    return StudentResult(entry["status"], entry["repairs"], entry["warnings"], exercises, penalty)
