"""`course grade`: a chapter's submissions into points, feedback pages and results."""

from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.common import EXIT_PROBLEMS, console, course_root, error_console, need_instructor_packages

NAME = "grade"
EXAMPLES = (
    "Examples: `course grade 01_attention`; `course grade 01_attention --student ada --force`; "
    "`course grade 01_attention --course demo --dry-run`."
)


def run(
    chapter: Annotated[str, typer.Argument(help="The chapter's folder name, as 01_attention.")],
    student: Annotated[str | None, typer.Option("--student", help="Grade this student only.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Grade again what has not changed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be graded.")] = False,
    course: Annotated[
        Path | None, typer.Option("--course", help="The course's folder.", show_default="here or above")
    ] = None,
) -> None:
    """Grade submitted/STUDENT/CHAPTER/CHAPTER.ipynb of everybody into nbgrader's gradebook.

    Feedback pages go to feedback/, the results to results/CHAPTER.json. What is graded already and has not
    changed is left alone. Exit code 1 when a submission could not be graded in whole; the others are graded
    all the same.
    """
    from autograder.grading.options import GradeOptions

    folder = course_root(course)
    options = GradeOptions(student=student, force=force)
    if dry_run:
        announce(folder, chapter, options)
    elif grade_and_show(folder, chapter, options):
        raise typer.Exit(EXIT_PROBLEMS)


def announce(folder: Path, chapter: str, options) -> None:
    """Say of each submission whether it would be graded."""
    need_instructor_packages()
    from autograder.grading.engine import planned

    for name, due in planned(folder, chapter, options):
        console().print(f"{name}: {'would be graded' if due else 'is graded and unchanged'}", markup=False)


def grade_and_show(folder: Path, chapter: str, options) -> bool:
    """Grade with progress on stderr and the table on stdout; return whether there were problems."""
    need_instructor_packages()
    from rich.progress import Progress

    from autograder.grading.engine import grade_chapter
    from autograder.grading.results import results_path

    with Progress(console=error_console(), transient=True) as bar:
        task = bar.add_task("Preparing", total=None)
        result = grade_chapter(
            folder,
            chapter,
            options,
            lambda name, number, total: bar.update(
                task, description=f"Grading {name}", completed=number - 1, total=total
            ),
        )
    show(result)
    console().print(f"Results: {results_path(folder, chapter)}", soft_wrap=True, markup=False)
    console().print(f"Feedback pages: {folder / 'feedback'}", soft_wrap=True, markup=False)
    return result.has_problems


def show(result) -> None:
    """Print the class: points, misconceptions, and what was mended or went wrong."""
    from autograder.commands.common import count
    from autograder.reports.points_table import misconception_counts, notes, points_table

    out = console()
    out.print(points_table(result))
    for exercise, name, number in misconception_counts(result):
        out.print(f"{exercise}: {count(number, 'student')} with {name}", markup=False)
    for sentence in notes(result):
        out.print(sentence, markup=False, soft_wrap=True)
