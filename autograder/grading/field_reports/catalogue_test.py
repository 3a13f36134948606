"""The catalogue names every row of the list once, its tests exist, and its page is fresh."""

import ast
from pathlib import Path

import pytest

from autograder.grading.field_reports.catalogue import KEYS, PAGE, REPORTS, ROOT, field_page
from autograder.grading.field_reports.of_cells import OF_CELLS
from autograder.grading.field_reports.of_classes import OF_CLASSES
from autograder.grading.field_reports.of_files import OF_FILES
from autograder.grading.field_reports.of_runs import OF_RUNS
from autograder.grading.field_reports.report import Report

NUMBERED, LETTERED = 58, "abcdefghij"


def exists(test: str) -> bool:
    """Return whether a file holds a test of this name."""
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)


def test_every_row_of_the_list_is_there_once() -> None:
    written = [report.key for report in (*OF_CELLS, *OF_FILES, *OF_RUNS, *OF_CLASSES)]
    assert sorted(written) == sorted(KEYS)
    assert [report.key for report in REPORTS] == list(KEYS)
    assert "".join(key for key in KEYS if key.isalpha()) == LETTERED
    assert sum(key.isdigit() for key in KEYS) == NUMBERED


def test_no_two_submissions_have_one_student() -> None:
    students = [student for report in REPORTS for student in report.students]
    assert len(students) == len(set(students))


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.key)
def test_every_row_is_tested_somewhere(report: Report) -> None:
    assert report.tested_by
    assert [test for test in report.tested_by if not exists(test)] == []


def test_a_test_that_is_not_there_is_noticed() -> None:
    here = Path(__file__).relative_to(ROOT).as_posix()
    assert exists(f"{here}::test_a_test_that_is_not_there_is_noticed")
    assert not exists(f"{here}::test_that_nobody_wrote")


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == field_page()
