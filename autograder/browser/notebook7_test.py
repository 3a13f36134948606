"""Notebook 7 opens the same chapter and runs it."""

from collections.abc import Callable

import pytest
from nbformat import NotebookNode
from playwright.sync_api import Page

from autograder.browser.lab import Lab
from autograder.browser.page import NotebookPage

pytestmark = pytest.mark.slow
FIRST_PLOT = "plots.show("


def test_notebook_7_opens_the_chapter_and_runs_its_first_cells(
    page: Page, lab: Lab, copy_of_chapter: str, released: NotebookNode, picture: Callable
) -> None:
    notebook = NotebookPage.open(page, lab, copy_of_chapter, door="notebooks")
    plot = next(index for index, cell in enumerate(released.cells) if FIRST_PLOT in cell.source)
    code = [index for index, cell in enumerate(released.cells[: plot + 1]) if cell.cell_type == "code"]
    for index in code:
        notebook.run(index)
        assert notebook.complaints(index) == []
    assert notebook.has_picture(plot)
    notebook.show(plot)
    picture("notebook-7")
