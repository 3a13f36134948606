"""Which submissions there are, and which of them are graded already."""

import difflib
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import CourseError


@dataclass(frozen=True)
class Submission:
    """One student's folder for one chapter, and where its results go."""

    student: str
    notebook: Path
    graded: Path
    feedback: Path

    def is_fresh(self, source: Path) -> bool:
        """Return whether the graded notebook is younger than the submission and than the tests."""
        if not self.graded.is_file() or not self.notebook.is_file():
            return False
        graded = self.graded.stat().st_mtime_ns
        return all(path.stat().st_mtime_ns <= graded for path in (self.notebook, source))


def find_submissions(submitted: Path, graded: Path, feedback: Path, chapter: str) -> list[Submission]:
    """Return everybody's submission of the chapter, by student.

    Raises:
        CourseError: there is none; the sentence says where nbgrader's layout wants them.
    """
    wanted = f"{submitted}/STUDENT/{chapter}/{chapter}.ipynb"
    if (submitted / chapter).is_dir():
        raise CourseError(f"{submitted / chapter}: student and chapter are swapped; a submission belongs at {wanted}.")
    folders = sorted(folder.parent for folder in submitted.glob(f"*/{chapter}") if folder.is_dir())
    if not folders:
        raise CourseError(f"There is no submission of {chapter} yet; put each one at {wanted}.")
    name = f"{chapter}.ipynb"
    return [
        Submission(
            student=folder.name,
            notebook=folder / chapter / name,
            graded=graded / folder.name / chapter / name,
            feedback=feedback / folder.name / chapter,
        )
        for folder in folders
    ]


def only_student(submissions: list[Submission], student: str | None) -> list[Submission]:
    """Return the one student's submission, or all of them for None.

    Raises:
        CourseError: this student handed nothing in.
    """
    if student is None:
        return submissions
    chosen = [submission for submission in submissions if submission.student == student]
    if chosen:
        return chosen
    names = [submission.student for submission in submissions]
    close = difflib.get_close_matches(student, names, n=1)
    hint = f"; did you mean {close[0]}?" if close else f"; there are: {', '.join(names)}."
    raise CourseError(f"Nothing was handed in by the student {student!r}{hint}")
