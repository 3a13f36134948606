"""Runs nbgrader's own release step on an instructor's notebook, without touching the course's gradebook."""

import logging
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.authoring.roles import BuildError
from autograder.course_folder import CONFIG_NAME


def write_notebook(notebook: NotebookNode) -> str:
    """Write a notebook as text, the same each time: indent 1, one newline at the end."""
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def release(notebook: NotebookNode, chapter: str, course: Path) -> str:
    """Make the text of the student's notebook, as `nbgrader generate_assignment` would.

    It works in a temporary folder and records nothing in any gradebook.

    Raises:
        BuildError: nbgrader refuses the notebook.
    """
    from nbgrader.converters import GenerateAssignment  # imports half of Jupyter, so only where it is used
    from nbgrader.converters.base import NbGraderException
    from nbgrader.coursedir import CourseDirectory

    with tempfile.TemporaryDirectory(prefix="course-build-") as folder:
        config = _course_config(course)
        config.CourseDirectory.root = folder
        config.CourseDirectory.assignment_id = chapter
        config.CourseDirectory.source_directory = "source"
        config.CourseDirectory.release_directory = "release"
        config.GenerateAssignment.no_database = True
        config.SaveCells.enabled = False
        source = Path(folder, "source", chapter, f"{chapter}.ipynb")
        source.parent.mkdir(parents=True)
        source.write_text(write_notebook(notebook), encoding="utf-8")
        complaints = _Complaints()
        converter = GenerateAssignment(coursedir=CourseDirectory(config=config), config=config)
        converter.log = complaints.logger
        try:
            converter.start()
        except NbGraderException as error:
            raise BuildError(f"{chapter}: nbgrader refuses to release it: {complaints.last() or error}") from error
        released = Path(folder, "release", chapter, f"{chapter}.ipynb")
        return released.read_text(encoding="utf-8")


def _course_config(course: Path):
    from traitlets.config.loader import PyFileConfigLoader

    return PyFileConfigLoader(CONFIG_NAME, path=str(course)).load_config()


class _Complaints(logging.Handler):
    """Keeps what nbgrader logs as errors, so that the reason can be told in our own message."""

    def __init__(self) -> None:
        super().__init__(level=logging.ERROR)
        self.messages: list[str] = []
        self.logger = logging.Logger("course build", level=logging.ERROR)
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record."""
        self.messages.append(record.getMessage())

    def last(self) -> str:
        """Return the last line of the first traceback, or else of the first message."""
        for message in sorted(self.messages, key=lambda text: "Traceback" not in text):
            return message.strip().splitlines()[-1]
        return ""
