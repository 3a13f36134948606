"""Start an exercise over: its answer becomes the starter again, and a copy keeps what was there."""

from pathlib import Path

from autograder.authoring.handed_out import fingerprint
from autograder.course_folder import chapter_path, learner_chapters
from autograder.errors import CourseError
from autograder.learning.notebooks import by_grade_id, cells_of, chapter_of, pristine_notebook, replace_notebook


def reset(course: Path, exercise: str) -> tuple[Path, Path | None]:
    """Put the starter of an exercise back; return the notebook, and the copy of what was there (None if unchanged).

    Raises:
        CourseError: there is no such exercise, or its starter is not at hand.
    """
    chapter, notebook = chapter_of(course, exercise, learner_chapters(course))
    path = chapter_path(course, chapter)
    starters = by_grade_id(pristine_notebook(course, chapter))
    changed = False
    for cell in cells_of(notebook, exercise):
        starter = starters.get(cell.metadata["nbgrader"]["grade_id"])
        if starter is None:
            raise CourseError(f"The chapter of today has no {exercise}; `course update {chapter}` takes it in first.")
        changed = changed or fingerprint(cell.source) != fingerprint(starter.source)
        cell.source, cell.cell_type, cell.metadata = starter.source, starter.cell_type, starter.metadata
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return path, replace_notebook(path, notebook) if changed else None
