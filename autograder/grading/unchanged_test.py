"""What a person need not look at again."""

from pathlib import Path

import nbformat
import pytest

from autograder.grading.unchanged import unchanged_cells

CODE, TEST, ESSAY = "def f(): ...", "check(f)", "Because."


def notebook(code: str = CODE, essay: str = ESSAY) -> str:
    """Return a notebook with an answer, its test and a written answer."""
    cells = []
    for name, source, solution in (("f", code, True), ("f-test", TEST, False), ("why", essay, True)):
        marks = {"grade_id": name, "solution": solution, "grade": name != "f", "locked": not solution}
        cells.append(nbformat.v4.new_code_cell(source, metadata={"nbgrader": marks}))
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells))


@pytest.mark.parametrize(
    ("code", "essay", "expected"),
    [
        (CODE, ESSAY, {"f", "f-test", "why"}),
        ("def f(): return 1", ESSAY, {"why"}),
        (CODE, "Because of that.", {"f"}),
        ("def f(): return 1", "Because of that.", set()),
    ],
)
def test_a_test_is_unchanged_only_with_the_whole_notebook(
    code: str, essay: str, expected: set[str], tmp_path: Path
) -> None:
    earlier = tmp_path / "earlier.ipynb"
    earlier.write_text(notebook(), encoding="utf-8")
    assert unchanged_cells(earlier, notebook(code, essay)) == expected


def test_without_an_earlier_grading_all_is_new(tmp_path: Path) -> None:
    assert unchanged_cells(tmp_path / "none.ipynb", notebook()) == set()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b"{}", b'{"cells": [3]}'])
def test_after_a_damaged_earlier_grading_all_is_new(content: bytes, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier.ipynb"
    earlier.write_bytes(content)
    assert unchanged_cells(earlier, notebook()) == set()
