"""Read a graded notebook: the verdicts that `check` left in its test cells, beside the gradebook's points."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from nbformat import NotebookNode

from autograder.grading.cells import GradedCell, grade_id
from autograder.grading.results import ExerciseResult, Status

VERDICT_TYPE = "application/vnd.course.verdict+json"
NO_VERDICT = "NoVerdict"  # the error's name in a graded cell that could not be judged
AWAITS_PERSON = "A written answer awaits a person; grade it in formgrader."
TIMED_OUT = "CellTimeoutError"
LONGEST_QUOTE = 200  # characters of a learner's error that a message repeats
UNDEFINED_NAME = re.compile(r"name '(?P<name>[^']+)' is not defined")
COLOR_CODE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Score:
    """A graded cell's row in the gradebook."""

    points: float
    needs_person: bool


def exercise_results(
    notebook: NotebookNode,
    graded: Iterable[GradedCell],
    scores: Mapping[str, Score],
    cell_timeout: float | None,
) -> dict[str, ExerciseResult]:
    """Return a result for each exercise of a graded notebook, in the order of the source."""
    cells = {grade_id(cell): cell for cell in notebook.cells}
    by_exercise: dict[str, list[GradedCell]] = {}
    for mark in graded:
        by_exercise.setdefault(mark.exercise, []).append(mark)
    return {name: exercise_result(marks, cells, scores, cell_timeout) for name, marks in by_exercise.items()}


def exercise_result(
    marks: list[GradedCell],
    cells: Mapping[str | None, NotebookNode],
    scores: Mapping[str, Score],
    cell_timeout: float | None,
) -> ExerciseResult:
    """Return one exercise's points, and the verdict that explains them."""
    rows = [scores[mark.grade_id] for mark in marks if mark.grade_id in scores]
    present = [cells[mark.grade_id] for mark in marks if mark.grade_id in cells]
    verdict = telling_verdict(present)
    message = verdict.get("message") if not verdict.get("passed") else None
    if message is None:
        short = [cells[mark.grade_id] for mark in marks if mark.grade_id in cells and lost_points(mark, scores)]
        message = next(filter(None, (explain_outputs(cell, cell_timeout) for cell in short)), None)
    if message is None and not present:
        message = "None of this exercise's graded cells is in the notebook."
    needs_person = any(row.needs_person for row in rows)
    if needs_person and message is None:
        message = AWAITS_PERSON
    return ExerciseResult(
        points=sum(row.points for row in rows),
        maximum=sum(mark.points for mark in marks),
        status=exercise_status(sum(map(was_judged, present)), len(marks), needs_person),
        misconception=verdict.get("misconception"),
        message=message,
        seconds=seconds_of(present),
        seed=verdict.get("seed"),
    )


def lost_points(mark: GradedCell, scores: Mapping[str, Score]) -> bool:
    """Return whether a graded cell has less than all its points, or no score at all."""
    row = scores.get(mark.grade_id)
    return row is None or row.points < mark.points


def was_judged(cell: NotebookNode) -> bool:
    """Return whether a graded cell could be judged."""
    return not any(output.get("ename") == NO_VERDICT for output in cell.get("outputs", []))


def exercise_status(present: int, expected: int, needs_person: bool) -> Status:
    """Return `failed` where no cell could be judged, `partly` where some could."""
    if present == 0:
        return "failed"
    if present < expected:
        return "partly"
    return "needs_manual" if needs_person else "graded"


def telling_verdict(cells: Iterable[NotebookNode]) -> dict:
    """Return the first verdict that did not pass, or else the last one, or else an empty one."""
    verdicts = [
        output["data"][VERDICT_TYPE]
        for cell in cells
        for output in cell.get("outputs", [])
        if isinstance(output.get("data", {}).get(VERDICT_TYPE), dict)
    ]
    failed = [verdict for verdict in verdicts if not verdict.get("passed")]
    return (failed[:1] or verdicts[-1:] or [{}])[0]


def explain_outputs(cell: NotebookNode, cell_timeout: float | None) -> str | None:
    """Return in one sentence why a test cell lost its points, or None where it shows no fault."""
    outputs = cell.get("outputs", [])
    errors = [output for output in outputs if output.output_type == "error"]
    if any(error.ename == TIMED_OUT for error in errors):
        limit = "its time limit" if cell_timeout is None else f"{cell_timeout:g} seconds"
        return f"The check did not finish within {limit} and was stopped; look for a loop that never ends."
    if errors:
        return explain_error(errors[0].ename, errors[0].evalue)
    for output in outputs:
        if output.output_type == "stream" and output.name == "stderr":
            return f"The check wrote to stderr, and nbgrader gives no points then: {quote(output.text)}"
    return None


def explain_error(name: str, value: str) -> str:
    """Return one sentence for the error that ended a test cell."""
    if name == NO_VERDICT:
        return value
    undefined = UNDEFINED_NAME.match(value)
    if name == "NameError" and undefined:
        missing = undefined["name"]
        return f"`{missing}` is not defined in this notebook: its cell was deleted or raised an error."
    return f"The test cell stopped with {name}: {quote(value)}"


def quote(text: str) -> str:
    """Return the first line of a learner's text, without colors and not too long."""
    lines = COLOR_CODE.sub("", text).strip().splitlines()
    line = lines[0] if lines else "(no text)"
    return line if len(line) <= LONGEST_QUOTE else line[:LONGEST_QUOTE] + " …"


def seconds_of(cells: Iterable[NotebookNode]) -> float | None:
    """Return how long the cells ran together, from the times that nbclient notes down."""
    total, known = 0.0, False
    for cell in cells:
        times = cell.metadata.get("execution", {})
        if "iopub.execute_input" in times and "shell.execute_reply" in times:
            began, ended = (
                datetime.fromisoformat(times[key]) for key in ("iopub.execute_input", "shell.execute_reply")
            )
            total, known = total + (ended - began).total_seconds(), True
    return round(total, 3) if known else None
