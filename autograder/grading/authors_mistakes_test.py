"""What the author of a chapter got wrong ends the run in one sentence; it is no student's fault."""

from pathlib import Path

import nbformat
import pytest

from autograder.build import answered_notebook
from autograder.course_folder import source_path
from autograder.errors import CourseError
from autograder.grading.engine import grade_chapter
from autograder.grading.pool import KernelPool
from autograder.grading.results import results_path
from autograder.testing.checked_course import CHAPTER, FIRST, RIGHT, make_checked_course


@pytest.mark.slow
def test_a_test_cell_that_checks_no_exercise_is_named(tmp_path: Path, warm_pool: KernelPool) -> None:
    course = make_checked_course(tmp_path / "course")
    submitted = course / "submitted" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    submitted.parent.mkdir(parents=True)
    nbformat.write(answered_notebook(course, CHAPTER, RIGHT), submitted)
    source = source_path(course, CHAPTER)
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace(f"check({FIRST}", f'check({FIRST}, "attention_scorse"'), encoding="utf-8")
    with pytest.raises(CourseError, match=rf"^The test cell {FIRST}-test checks 'attention_scorse', which is no exer"):
        grade_chapter(course, CHAPTER, pool=warm_pool)
    assert '"ada"' not in results_path(course, CHAPTER).read_text(encoding="utf-8")
