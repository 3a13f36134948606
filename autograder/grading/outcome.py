"""One submission's way through a worker: what was handed in, and what its grading gave."""

from dataclasses import dataclass

from autograder.grading.kit import ChapterKit
from autograder.grading.step import Graded
from autograder.grading.submissions import HandedIn, Submission, read_submission
from autograder.grading.verdicts import quote
from autograder.grading.writing import no_means


@dataclass
class Outcome:
    """One submission's way through a worker."""

    handed_in: HandedIn
    key: str
    graded: Graded


def read(submission: Submission, kit: ChapterKit) -> HandedIn:
    """Read a submission; that it cannot be read is this submission's result.

    Raises:
        OSError: It is this system that has no memory or open files left.
    """
    try:
        return read_submission(submission, kit.marked)
    except OSError as error:
        if no_means(error):
            raise  # here, which is not the student's fault
        return HandedIn(reason=explain_failure(error))


def explain_failure(error: BaseException) -> str:
    """Return in one sentence why a submission could not be graded."""
    return f"The notebook could not be graded: {type(error).__name__}: {quote(str(error))}"
