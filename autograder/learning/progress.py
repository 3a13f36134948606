"""How far a learner is, read from the notebooks alone: what was changed, and what the last saved check said."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nbformat import NotebookNode
from nbgrader.utils import compute_checksum

from autograder.course_folder import chapter_path, learner_chapters
from autograder.errors import CourseError
from autograder.learning.notebooks import cells_of, known_role, learner_notebook

State = Literal["passed", "tried", "untouched", "answered"]
STATES: dict[State, str] = {
    "passed": "the check passed when it last ran",
    "answered": "a written answer is there; a person reads it",
    "tried": "something was changed; the check has not passed since",
    "untouched": "as it was handed out",
}


@dataclass(frozen=True)
class Step:
    """One exercise of a chapter.

    Args:
        points: What it gives in all.
    """

    exercise: str
    state: State
    points: float


@dataclass(frozen=True)
class ChapterProgress:
    """One chapter; `problem` says in a sentence why its notebook could not be read."""

    chapter: str
    title: str
    steps: tuple[Step, ...] = ()
    problem: str = ""

    def number(self, state: State) -> int:
        """Return how many exercises are in a state."""
        return sum(step.state == state for step in self.steps)

    @property
    def points(self) -> float:
        """Return the points of the exercises that passed; a written answer's are a person's to give."""
        return sum(step.points for step in self.steps if step.state == "passed")

    @property
    def maximum(self) -> float:
        """Return the points of the whole chapter."""
        return sum(step.points for step in self.steps)


def progress(course: Path) -> list[ChapterProgress]:
    """Return every chapter's progress, in order."""
    return [progress_of(chapter_path(course, chapter), chapter) for chapter in learner_chapters(course)]


def progress_of(path: Path, chapter: str) -> ChapterProgress:
    """Return one chapter's progress; a damaged notebook has a problem instead."""
    try:
        notebook = learner_notebook(path)
    except CourseError as error:
        return ChapterProgress(chapter, chapter, problem=str(error))
    exercises = dict.fromkeys(role[0] for cell in notebook.cells if (role := known_role(cell)) is not None)
    steps = tuple(step_of(notebook, exercise) for exercise in exercises)
    return ChapterProgress(chapter, notebook.metadata.get("title", chapter), steps)


def step_of(notebook: NotebookNode, exercise: str) -> Step:
    """Return where an exercise stands."""
    cells = cells_of(notebook, exercise)
    points = sum(float(cell.metadata["nbgrader"].get("points", 0)) for cell in cells)
    own = [cell for cell in cells if cell.metadata["nbgrader"].get("solution")]
    tests = [cell for cell in cells if not cell.metadata["nbgrader"].get("solution")]
    if not own or all(is_as_handed_out(cell) for cell in own):
        return Step(exercise, "untouched", points)
    if not tests:
        return Step(exercise, "answered", points)
    return Step(exercise, "passed" if any(map(says_passed, tests)) else "tried", points)


def is_as_handed_out(cell: NotebookNode) -> bool:
    """Return whether an answer is still the starter, by nbgrader's checksum."""
    return cell.metadata["nbgrader"].get("checksum") == compute_checksum(cell)


def says_passed(cell: NotebookNode) -> bool:
    """Return whether a check's saved output says that it passed, and no error follows."""
    outputs = cell.get("outputs", [])
    if any(output.output_type == "error" for output in outputs):
        return False
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
    return any(": passed, " in str(text) for text in texts)
