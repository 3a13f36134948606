"""Make a graded class larger by copies of its submissions, to time what is made from graded work.

A copy has its own student, rows in the gradebook, graded notebook and result, so feedback and report do for it what
they do for any other. A comment in each of its answers keeps two copies from having the same text.
"""

import itertools
from copy import deepcopy
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from autograder.grading.cells import role_of
from autograder.grading.events import run_log
from autograder.grading.results import read_results, write_results
from autograder.grading.stock import StockCourse

ROW = ("auto_score", "manual_score", "extra_credit", "needs_manual_grade")
COMMENT = ("auto_comment", "manual_comment")


def enlarge(course: Path, chapter: str, students: int) -> list[str]:
    """Copy graded submissions, each in turn, until there are so many; return all students.

    Args:
        course: The course folder, in which a few are graded.
        chapter: The chapter.
        students: How many there are in the end.
    """
    result = read_results(course, chapter)
    originals = list(result.students)
    copies = {
        f"{original}-copy-{number:04}": original
        for number, original in zip(range(students - len(originals)), itertools.cycle(originals), strict=False)
    }
    with StockCourse(course, chapter, run_log(chapter)).gradebook() as gradebook:
        for copy, original in copies.items():
            copy_rows(gradebook, chapter, original, copy)
            copy_notebooks(course, chapter, original, copy)
            result.students[copy] = deepcopy(result.students[original])
        gradebook.db.commit()
    write_results(course, result)
    return list(result.students)


def copy_rows(gradebook: Gradebook, chapter: str, original: str, copy: str) -> None:
    """Give a new student the points and comments of another."""
    gradebook.add_student(copy)
    gradebook.add_submission(chapter, copy)
    source, target = (gradebook.find_submission_notebook(chapter, chapter, who) for who in (original, copy))
    for columns, kind in ((ROW, "grades"), (COMMENT, "comments")):
        rows = {row.name: row for row in getattr(target, kind)}
        for row in getattr(source, kind):
            for column in columns:
                setattr(rows[row.name], column, getattr(row, column))


def copy_notebooks(course: Path, chapter: str, original: str, copy: str) -> None:
    """Copy what was handed in and what was graded; the answers get a comment with the student's name."""
    for step in ("submitted", "autograded"):
        source, target = (course / step / who / chapter / f"{chapter}.ipynb" for who in (original, copy))
        notebook = nbformat.read(source, as_version=nbformat.NO_CONVERT)
        sign(notebook, copy)
        target.parent.mkdir(parents=True)
        nbformat.write(notebook, target)


def sign(notebook: NotebookNode, student: str) -> None:
    """Put a student's name below the code of each answer."""
    for cell in notebook.cells:
        role = role_of(cell)
        if cell.cell_type == "code" and role is not None and role[1] == "answer":
            cell.source += f"\n# {student}"
