"""Grade with nbgrader's own kernels in nbgrader's own process, for systems where the sandbox does not run."""

from pathlib import Path

import nbformat

from autograder.grading import linux
from autograder.grading.gradebook import GradebookWriter
from autograder.grading.kit import ChapterKit
from autograder.grading.reading import UnreadableError, read_notebook
from autograder.grading.repair import repair_cells
from autograder.grading.results import StudentResult, overall_status
from autograder.grading.step import Graded, failed
from autograder.grading.stock import StockCourse
from autograder.grading.submissions import HandedIn, Submission
from autograder.grading.verdicts import exercise_results, quote


def warm_kernels_run_here() -> bool:
    """Return whether this system has what forked, confined kernels are built on."""
    try:
        linux.machine()
    except OSError:
        return False
    return True


def grade_by_stock(
    stock: StockCourse,
    kit: ChapterKit,
    submission: Submission,
    handed_in: HandedIn,
    book: GradebookWriter,
    cell_seconds: float,
) -> Graded:
    """Let nbgrader grade one submission; it writes the gradebook and the graded notebook itself.

    Its verdicts come from the process that the student's code runs in, so they can be forged.
    """
    if handed_in.data is None:
        return failed(kit, handed_in.reason)
    if not submission.notebook.is_file():
        return failed(kit, f"{submission.notebook.name} was not handed in under this name.")
    try:
        read_notebook(handed_in.data, submission.notebook.name)
    except UnreadableError as error:
        return failed(kit, str(error))
    repairs: list[str] = []
    error = stock.autograde(submission.student, lambda notebook: repairs.extend(repair_cells(notebook, kit.source)))
    if error is not None:
        return failed(kit, explain(error), repairs)
    notebook = nbformat.read(Path(submission.graded), as_version=nbformat.NO_CONVERT)
    automatic = book.automatic(submission.student)
    scores = book.read(submission.student).scores
    exercises = exercise_results(notebook, kit.graded, scores, cell_seconds)
    return Graded(StudentResult(overall_status(exercises), repairs, [], exercises), automatic, None)


def explain(error: BaseException) -> str:
    """Return in one sentence why nbgrader could not grade a submission."""
    name = type(error).__name__
    if name == "DeadKernelError":
        return "The kernel died while the notebook ran, perhaps because memory ran out; nothing could be graded."
    if name in ("CellTimeoutError", "UnresponsiveKernelError"):
        return "A cell never ended and could not be interrupted; nothing could be graded."
    return f"The notebook could not be graded: {name}: {quote(str(error))}"
