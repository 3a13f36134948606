"""nbgrader's own steps on one course folder: release, autograde, feedback, and what the gradebook holds."""

import copy
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import cast

from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback
from nbgrader.converters.base import BaseConverter, NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute
from sqlalchemy.exc import SQLAlchemyError
from traitlets.config import Config, PyFileConfigLoader

from autograder.errors import CourseError
from autograder.grading.database import database_url, opened, refuse_foreign, shown, students_with_work, words
from autograder.grading.verdicts import Score

CONFIGURATION = "nbgrader_config.py"
USUAL_DATABASE = "sqlite:///gradebook.db"  # nbgrader's own place, in the course's folder
RELEASE_FOR_THE_GRADEBOOK = os.path.join("build", "release")  # the students' chapters/ is made by `course build`

Repair = Callable[[NotebookNode], None]


class NamedStudents(BaseConverter):
    """One of nbgrader's steps on some students' notebooks, taken by path: a name with `[` is no pattern."""

    students: Sequence[str] = ()

    def init_notebooks(self) -> None:
        """Name the notebooks without searching for them."""
        chapter = cast(CourseDirectory, self.coursedir).assignment_id
        folders = [self._format_source(chapter, student) for student in self.students]
        self.assignments = {folder: [os.path.join(folder, f"{chapter}.ipynb")] for folder in folders}
        self.notebooks = []


class FeedbackPages(NamedStudents, GenerateFeedback):
    """nbgrader's feedback pages."""


class Remembering(BaseConverter):
    """One of nbgrader's steps, which also remembers what went wrong instead of only logging it."""

    failure: BaseException | None = None

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Prepare the submission; keep the error if that fails."""
        with self.remembered():
            super().init_assignment(assignment_id, student_id)

    def convert_single_notebook(self, notebook_filename: str) -> None:
        """Do the step on the notebook; keep the error if that fails."""
        with self.remembered():
            super().convert_single_notebook(notebook_filename)

    @contextmanager
    def remembered(self) -> Iterator[None]:
        """Keep the error of this step, and let nbgrader deal with it."""
        try:
            yield
        except Exception as error:
            self.failure = error
            raise


class AutogradeOne(Remembering, NamedStudents, Autograde):
    """nbgrader's autograder."""


class Release(Remembering, GenerateAssignment):
    """nbgrader's release step."""


class StockCourse:
    """nbgrader on one chapter of one course folder."""

    def __init__(self, course: Path, chapter: str, log: logging.Logger, database: str | None = None):
        """Read the folder's nbgrader_config.py; nothing of the user's own nbgrader settings is read.

        Args:
            course: The course's folder.
            chapter: The chapter, which is assignment and notebook at once.
            log: Where nbgrader's words go.
            database: The gradebook's URL, in place of the configured one.
        """
        self.course, self.chapter, self.log = course, chapter, log
        self.config = load_configuration(course)
        where = database or self.config.CourseDirectory.get("db_url") or USUAL_DATABASE
        self.config.CourseDirectory.db_url = database_url(str(where), course.absolute())
        # A kernel tells every run on stderr that it listens on this machine in plain text; errors it still tells.
        self.config.Execute.extra_arguments = [*self.config.Execute.get("extra_arguments", []), "--log-level=ERROR"]
        self.folder = self.course_directory("*")

    @property
    def cell_timeout(self) -> float | None:
        """Return the seconds after which nbgrader stops a cell."""
        return Execute(config=self.config).timeout

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Let nbgrader find its `alembic`, beside the Python that runs now, and put its warnings into the log."""
        before = os.environ.get("PATH", "")
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default")
                warnings.showwarning = lambda message, *_, **__: self.log.warning("Python warns: %s", message)
                yield
        finally:
            os.environ["PATH"] = before

    @contextmanager
    def gradebook(self) -> Iterator[Gradebook]:
        """Open the gradebook for a moment."""
        with self.at_work(), opened(self.open_gradebook, self.folder.db_url) as gradebook:
            yield gradebook

    def open_gradebook(self) -> Gradebook:
        """Open the gradebook, made first where there is none; `at_work` must be around this."""
        refuse_foreign(self.folder.db_url, self.folder.course_id)
        return Gradebook(self.folder.db_url, self.folder.course_id)

    def is_registered(self) -> bool:
        """Return whether the gradebook knows the chapter."""
        with self.gradebook() as gradebook:
            try:
                gradebook.find_notebook(self.chapter, self.chapter)
            except MissingEntry:
                return False
            return True

    def known_students(self) -> set[str]:
        """Return whose submissions of the chapter the gradebook knows; nothing is made or written."""
        return students_with_work(self.folder.db_url, self.folder.course_id, self.chapter)

    def course_directory(self, student: str, config: Config | None = None) -> CourseDirectory:
        """Return nbgrader's view of the folder, for one student or (`*`) for all."""
        return CourseDirectory(
            config=config or self.config,
            root=str(self.course),
            assignment_id=self.chapter,
            student_id=student,
            log=self.log,
        )

    def path(self, step: str, student: str) -> Path:
        """Return a student's folder in one of nbgrader's steps, such as `autograded`."""
        return Path(os.path.normpath(self.folder.format_path(step, student, self.chapter)))

    @property
    def source(self) -> Path:
        """Return the instructor's notebook."""
        return self.path(self.folder.source_directory, ".") / f"{self.chapter}.ipynb"

    def register(self) -> None:
        """Bring the gradebook's cells up to the source, by nbgrader's own release step."""
        config = copy.deepcopy(self.config)
        config.CourseDirectory.release_directory = RELEASE_FOR_THE_GRADEBOOK
        step = Release(coursedir=self.course_directory(".", config), config=config, log=self.log)
        step.force = True
        try:
            with self.at_work():
                step.start()
        except (NbGraderException, ImportError) as error:
            cause: BaseException | None = step.failure
            while cause is not None and not isinstance(cause, SQLAlchemyError):
                cause = cause.__context__
            if cause is not None:  # which nbgrader takes for an old gradebook, or does not name
                where, said = shown(self.folder.db_url), words(cause)
                raise CourseError(f"The gradebook {where} cannot be used: {said}; run it again.") from error
            raise CourseError(f"nbgrader cannot release {self.chapter}: {error}") from error

    def autograde(self, student: str, repair: Repair) -> BaseException | None:
        """Grade one submission anew; return the error that prevented it, or None."""

        def repair_first(notebook: NotebookNode, resources):
            repair(notebook)
            return notebook, resources

        students = self.course_directory(student)
        step = AutogradeOne(coursedir=students, config=self.config, log=self.log)
        step.force, step.students = True, [student]
        step.sanitize_preprocessors = [repair_first, *step.sanitize_preprocessors]
        try:
            with self.at_work():
                step.start()
        except NbGraderException as error:
            return step.failure or error
        return step.failure

    def feedback(self, students: Sequence[str]) -> list[str]:
        """Write the feedback pages of these students; return those whose page could not be written."""
        step = FeedbackPages(coursedir=self.course_directory("*"), config=self.config, log=self.log)
        step.force, step.students = True, students
        try:
            with self.at_work():
                step.start()
        except NbGraderException as error:
            self.log.error("Feedback: %s", error)
        return [student for student in students if not self.page(student).is_file()]

    def page(self, student: str) -> Path:
        """Return where a student's feedback page lies."""
        return self.path(self.folder.feedback_directory, student) / f"{self.chapter}.html"

    def scores(self, student: str) -> dict[str, Score]:
        """Return the gradebook's rows of one submission by `grade_id`; none if it is not there."""
        with self.gradebook() as gradebook:
            try:
                notebook = gradebook.find_submission_notebook(self.chapter, self.chapter, student)
            except MissingEntry:
                return {}
            return {grade.name: Score(float(grade.score), bool(grade.needs_manual_grade)) for grade in notebook.grades}

    def set_due_date(self, due: datetime) -> None:
        """Note the chapter's due date (UTC) in the gradebook."""
        with self.gradebook() as gradebook:
            gradebook.update_or_create_assignment(self.chapter).duedate = due
            gradebook.db.commit()


def load_configuration(course: Path) -> Config:
    """Read nbgrader_config.py of a course folder.

    Raises:
        CourseError: there is none, or it cannot be run.
    """
    if not (course / CONFIGURATION).is_file():
        raise CourseError(f"There is no {CONFIGURATION} in {course}; name the course's folder with --course.")
    try:
        return PyFileConfigLoader(CONFIGURATION, path=str(course)).load_config()
    except Exception as error:
        raise CourseError(f"{course / CONFIGURATION} cannot be read: {type(error).__name__}: {error}") from error
