"""The files of a run besides results and gradebook: the instructor's notebook and the graded ones."""

import shutil
from pathlib import Path

from autograder.authoring.chapter_source import read_chapter
from autograder.authoring.instructor import instructor_notebook
from autograder.authoring.release import write_notebook
from autograder.course_folder import source_path
from autograder.grading.submissions import TIMESTAMP, HandedIn, Submission
from autograder.grading.writing import put

READ_ONLY = 0o444  # as nbgrader leaves graded notebooks


def source_text(course: Path, chapter: str, notebook: Path) -> str:
    """Return the instructor's notebook: as the chapter's source makes it now, or as it lies there without one."""
    path = source_path(course, chapter)
    if path.is_file():
        return write_notebook(instructor_notebook(read_chapter(path)))
    return notebook.read_text(encoding="utf-8")


def write_if_new(path: Path, text: str) -> None:
    """Write a file unless it reads so already."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    put(path, text.encode())


def write_graded(submission: Submission, notebook: str, handed_in: HandedIn) -> None:
    """Write the graded notebook, and beside it what was handed in beside the submitted one."""
    folder = submission.graded.parent
    if folder.is_dir():
        forget(folder, keep=submission.graded.name)
    files = handed_in.files | ({TIMESTAMP: handed_in.stamp} if handed_in.stamp else {})
    for name, content in files.items():
        put(folder / name, content, READ_ONLY)
    put(submission.graded, notebook.encode(), READ_ONLY)


def forget(folder: Path, keep: str) -> None:
    """Remove what an earlier grading left in a folder, but for one file that is replaced in one step."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != keep:
            path.unlink()


def forget_graded(submission: Submission) -> None:
    """Remove the graded notebook and the feedback page of an earlier submission."""
    for old in (submission.graded.parent, submission.feedback):
        shutil.rmtree(old, ignore_errors=True)
