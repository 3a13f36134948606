"""What a notebook's cells are: which nbgrader names them, and which exercise they belong to."""

from dataclasses import dataclass

from nbformat import NotebookNode

from autograder.authoring.roles import exercise_and_role


@dataclass(frozen=True)
class GradedCell:
    """A cell of the source that gives points.

    Args:
        written: Whether a person grades it.
    """

    grade_id: str
    exercise: str
    points: float
    written: bool


def grade_id(cell: NotebookNode) -> str | None:
    """Return nbgrader's name of the cell, or None for a cell that it does not know."""
    marks = cell.metadata.get("nbgrader")
    return marks.get("grade_id") if isinstance(marks, dict) else None


def gives_points(cell: NotebookNode) -> bool:
    """Return whether nbgrader grades the cell."""
    return grade_id(cell) is not None and bool(cell.metadata["nbgrader"].get("grade"))


def role_of(cell: NotebookNode) -> tuple[str, str] | None:
    """Return exercise and role of a cell that nbgrader names, or None for any other."""
    identity = grade_id(cell)
    return None if identity is None else exercise_and_role(identity)


def exercise_of(cell: NotebookNode) -> str:
    """Return the exercise of a graded cell; a name that our builder did not give stands for itself."""
    identity = str(grade_id(cell))
    try:
        return exercise_and_role(identity)[0]
    except ValueError:
        return identity


def graded_cells(source: NotebookNode) -> list[GradedCell]:
    """Return the source's graded cells in their order."""
    return [
        GradedCell(
            grade_id=str(grade_id(cell)),
            exercise=exercise_of(cell),
            points=float(cell.metadata["nbgrader"]["points"]),
            written=bool(cell.metadata["nbgrader"].get("solution")),
        )
        for cell in source.cells
        if gives_points(cell)
    ]
