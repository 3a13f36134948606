"""Write the feedback pages of a graded chapter."""

from pathlib import Path

from autograder.errors import CourseError
from autograder.grading.chapter_run import ChapterRun
from autograder.grading.events import words_of_nbgrader
from autograder.grading.options import GradeOptions
from autograder.grading.submissions import only_student


def write_pages(course: Path, chapter: str, student: str | None = None, database: str | None = None) -> int:
    """Write the pages of everybody who is graded, or of one student; return how many.

    Raises:
        CourseError: nobody is graded yet, or a page could not be written.
    """
    run = ChapterRun(course.absolute(), chapter, GradeOptions(database=database))
    graded = [one.student for one in only_student(run.submissions(), student) if one.graded.is_file()]
    if not graded:
        whose = f"{student}'s {chapter}" if student else chapter
        raise CourseError(f"Nothing of {whose} is graded yet; `course grade {chapter}` does that and writes the pages.")
    log = run.results.with_suffix(".log")
    with words_of_nbgrader(run.log, log):
        missing = run.stock.feedback(graded)
    if missing:
        raise CourseError(f"No page could be written for {', '.join(missing)}; {log} says why.")
    return len(graded)
