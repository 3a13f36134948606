import json
from pathlib import Path

import nbformat

from autograder.build import answered_notebook
from autograder.grading.engine import grade_chapter
from autograder.grading.events import run_log
from autograder.grading.options import GradeOptions
from autograder.grading.results import read_results
from autograder.grading.stock import StockCourse
from autograder.reports.class_report import write_report
from autograder.reports.copies import enlarge
from autograder.reports.pages import write_pages
from autograder.testing.tiny_course import CHAPTER, RIGHT, make_tiny_course

MANY = 5


def test_copies_have_points_answers_pages_and_a_place_in_the_report(tmp_path: Path) -> None:
    make_tiny_course(tmp_path)
    answers = {"ada": RIGHT, "ben": {"double": RIGHT["double"]}}
    for student, given in answers.items():
        folder = tmp_path / "submitted" / student / CHAPTER
        folder.mkdir(parents=True)
        (folder / f"{CHAPTER}.ipynb").write_text(json.dumps(answered_notebook(tmp_path, CHAPTER, given)))
    grade_chapter(tmp_path, CHAPTER, GradeOptions(feedback=False, workers=1))
    students = enlarge(tmp_path, CHAPTER, MANY)
    assert students == ["ada", "ben", "ada-copy-0000", "ben-copy-0001", "ada-copy-0002"]
    stock = StockCourse(tmp_path, CHAPTER, run_log(CHAPTER))
    result = read_results(tmp_path, CHAPTER)
    for student in students:
        original = student.split("-")[0]
        assert stock.scores(student) == stock.scores(original) != {}
        assert result.students[student].points == result.students[original].points
    assert write_pages(tmp_path, CHAPTER) == MANY
    assert "ada-copy-0002" in write_report(tmp_path, CHAPTER).read_text(encoding="utf-8")
    texts = [
        nbformat.read(tmp_path / "autograded" / student / CHAPTER / f"{CHAPTER}.ipynb", as_version=4).cells
        for student in ("ada", "ada-copy-0000", "ada-copy-0002")
    ]
    assert len({str([cell.source for cell in cells]) for cells in texts}) == len(texts)
