"""Grade a chapter's submissions one by one, so that none of them can stop the others."""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import nbformat
from nbformat.reader import NotJSONError

from autograder.authoring.chapter_source import read_chapter
from autograder.authoring.instructor import instructor_notebook
from autograder.authoring.release import write_notebook
from autograder.course_folder import chapter_names, source_path
from autograder.errors import CourseError
from autograder.grading.cells import GradedCell, graded_cells
from autograder.grading.options import GradeOptions
from autograder.grading.repair import repair_cells
from autograder.grading.results import (
    ClassResult,
    StudentResult,
    overall_status,
    read_results,
    results_path,
    write_results,
)
from autograder.grading.stock import StockCourse
from autograder.grading.submissions import Submission, find_submissions, only_student
from autograder.grading.verdicts import exercise_results, quote

SECONDS_OF_A_MINUTE = 60

EVERYBODY = GradeOptions()

Progress = Callable[[str, int, int], None]


def grade_chapter(
    course: Path, chapter: str, options: GradeOptions = EVERYBODY, progress: Progress | None = None
) -> ClassResult:
    """Grade the chapter's submissions into gradebook, feedback pages and `results/CHAPTER.json`.

    Args:
        course: The folder that holds nbgrader_config.py.
        chapter: The chapter's folder name, such as `01_attention`.
        options: Whom to grade, and how.
        progress: Called before each submission with the student, its number from 1, and how many there are.

    Raises:
        CourseError: bad input: no configuration, chapter, submission or student of this name.
    """
    run = ClassRun(course, chapter)
    chosen = only_student(run.submissions(), options.student)
    with run.log_file():
        run.prepare()
        for number, submission in enumerate(chosen, start=1):
            if progress is not None:
                progress(submission.student, number, len(chosen))
            run.grade(submission, options)
        run.keep()
    return ClassResult(chapter, {item.student: run.result.students[item.student] for item in chosen})


def planned(course: Path, chapter: str, options: GradeOptions) -> list[tuple[str, bool]]:
    """Return each student that a run would look at, and whether it would grade the submission anew."""
    run = ClassRun(course, chapter)
    chosen = only_student(run.submissions(), options.student)
    return [(item.student, options.force or not item.is_fresh(run.stock.source)) for item in chosen]


class ClassRun:
    """One grading run over one chapter."""

    def __init__(self, course: Path, chapter: str):
        """Read the configuration; find the chapter."""
        self.course, self.chapter = course, chapter
        self.log = run_log(chapter)
        self.stock = StockCourse(course, chapter, self.log)
        self.check_chapter()
        self.result = read_results(course, chapter)
        self.source = nbformat.v4.new_notebook()
        self.graded: list[GradedCell] = []

    def check_chapter(self) -> None:
        """Refuse a chapter that has neither a source notebook nor a source to build it from."""
        if self.stock.source.is_file():
            return
        sources = self.stock.source.parent.parent
        known = sorted({*chapter_names(self.course), *(path.parent.name for path in sources.glob("*/*.ipynb"))})
        if self.chapter not in known:
            there = f"there are: {', '.join(known)}" if known else "there is none at all"
            raise CourseError(f"There is no chapter {self.chapter!r} in {self.course}; {there}.")

    def submissions(self) -> list[Submission]:
        """Return everybody's submission."""
        folder = self.stock.folder
        submitted, graded, feedback = (
            self.course / step
            for step in (folder.submitted_directory, folder.autograded_directory, folder.feedback_directory)
        )
        return find_submissions(submitted, graded, feedback, self.chapter)

    @contextmanager
    def log_file(self) -> Iterator[None]:
        """Keep what nbgrader says in this run beside the results."""
        path = results_path(self.course, self.chapter).with_suffix(".log")
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(path, mode="w", encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        self.log.addHandler(handler)
        try:
            yield
        finally:
            self.log.removeHandler(handler)
            handler.close()

    def prepare(self) -> None:
        """Bring the instructor's notebook up to its source, and the gradebook up to the notebook."""
        if source_path(self.course, self.chapter).is_file():
            write_if_new(self.stock.source, instructor_text(self.course, self.chapter))
        self.source = nbformat.read(self.stock.source, as_version=nbformat.NO_CONVERT)
        self.graded = graded_cells(self.source)
        self.stock.register()

    def grade(self, submission: Submission, options: GradeOptions) -> None:
        """Grade one submission if that is due, and write its feedback page."""
        known = self.result.students.get(submission.student)
        try:
            if options.force or known is None or not submission.is_fresh(self.stock.source):
                outcome = self.grade_anew(submission)
            else:
                outcome = self.outcome(submission, known.repairs, known.warnings)
        except Exception as error:  # whatever it is, it is this submission's result and does not end the run
            self.log.exception("Grading %s", submission.student)
            outcome = self.failed(submission, [], explain_failure(error))
        if options.feedback and outcome.status != "failed" and not self.stock.feedback(submission.student):
            outcome.warnings.append("The feedback page could not be written; the log in results/ says why.")
        self.result.students[submission.student] = outcome
        write_results(self.course, self.result)

    def grade_anew(self, submission: Submission) -> StudentResult:
        """Let nbgrader grade the submission; a failure is this submission's result and nobody else's."""
        self.log.info("Grading %s", submission.student)
        repairs: list[str] = []
        reason = unreadable(submission.notebook)
        if reason is None:
            error = self.stock.autograde(
                submission.student, lambda notebook: repairs.extend(repair_cells(notebook, self.source))
            )
            reason = None if error is None else explain_failure(error)
        if reason is not None:
            return self.failed(submission, repairs, reason)
        late = self.stock.seconds_late(submission.student)
        warnings = [f"Handed in {late / SECONDS_OF_A_MINUTE:.0f} minutes late."] if late > 0 else []
        return self.outcome(submission, repairs, warnings)

    def outcome(self, submission: Submission, repairs: list[str], warnings: list[str]) -> StudentResult:
        """Read the graded notebook and the gradebook."""
        notebook = nbformat.read(submission.graded, as_version=nbformat.NO_CONVERT)
        scores = self.stock.scores(submission.student)
        exercises = exercise_results(notebook, self.graded, scores, self.stock.cell_timeout)
        return StudentResult(overall_status(exercises), repairs, warnings, exercises)

    def failed(self, submission: Submission, repairs: list[str], reason: str) -> StudentResult:
        """Withdraw what an earlier submission of this student had scored, and give the reason."""
        self.stock.withdraw_scores(submission.student)
        for old in (submission.graded.parent, submission.feedback):
            shutil.rmtree(old, ignore_errors=True)
        scores = self.stock.scores(submission.student)
        empty = nbformat.v4.new_notebook()
        exercises = exercise_results(empty, self.graded, scores, self.stock.cell_timeout)
        exercises = {name: replace(exercise, message=reason, status="failed") for name, exercise in exercises.items()}
        return StudentResult("failed", repairs, [reason], exercises)

    def keep(self) -> None:
        """Write the results, without students whose submission is gone, in the order of their names."""
        present = {submission.student for submission in self.submissions()}
        self.result.students = {
            name: self.result.students[name] for name in sorted(self.result.students) if name in present
        }
        write_results(self.course, self.result)


def instructor_text(course: Path, chapter: str) -> str:
    """Return the instructor's notebook as the chapter's source makes it now."""
    return write_notebook(instructor_notebook(read_chapter(source_path(course, chapter))))


def write_if_new(path: Path, text: str) -> None:
    """Write a file unless it reads so already, since a younger source means that tests changed."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def run_log(chapter: str) -> logging.Logger:
    """Return the log of one run: nbgrader's words go to a file, not to the terminal."""
    log = logging.Logger(f"course.grade.{chapter}", level=logging.INFO)
    log.addHandler(logging.NullHandler())
    return log


def unreadable(notebook: Path) -> str | None:
    """Return in one sentence why the submitted file is no notebook, or None if it is one."""
    if not notebook.is_file():
        others = sorted(path.name for path in notebook.parent.glob("*.ipynb"))
        found = f"found only {', '.join(others)}" if others else "there is no notebook in the folder"
        return f"{notebook.name} was not handed in: {found}."
    try:
        nbformat.read(notebook, as_version=nbformat.NO_CONVERT)
    except (NotJSONError, UnicodeDecodeError):
        return f"{notebook.name} is no notebook: the file is not JSON in UTF-8."
    except Exception as error:
        return f"{notebook.name} cannot be read as a notebook: {quote(str(error))}"
    return None


def explain_failure(error: BaseException) -> str:
    """Return in one sentence why nbgrader could not grade a submission."""
    name = type(error).__name__
    if name == "DeadKernelError":
        return "The kernel died while the notebook ran, perhaps because memory ran out; nothing could be graded."
    if name in ("CellTimeoutError", "UnresponsiveKernelError"):
        return "A cell never ended and could not be interrupted; nothing could be graded."
    return f"The notebook could not be graded: {name}: {quote(str(error))}"
