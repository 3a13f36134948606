"""Notebook 7 opens the same chapters and runs them."""

import shutil
from collections.abc import Callable

import nbformat
import pytest
from nbformat import NotebookNode
from playwright.sync_api import ConsoleMessage, Page

from autograder.browser.conftest import ROOT
from autograder.browser.lab import Lab, end_kernels
from autograder.browser.measuring import code_cells
from autograder.browser.page import NotebookPage
from autograder.course_folder import CHAPTERS, chapter_path

pytestmark = pytest.mark.slow
FIRST_AND_LAST = ("00_start_here", "01_attention", "12_scaling_up")  # all are opened in JupyterLab; see CONTRIBUTING.md
OWN_ERROR = "Cannot read properties of undefined (reading 'schema')"  # Notebook 7 throws it, whatever it opens
SOON = 200  # milliseconds
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


@pytest.fixture
def errors(page: Page) -> list[str]:
    """Return the list in which errors of the page's own code and of its console come to stand."""
    found: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            found.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: found.append(str(error)))
    return found


def test_an_error_of_the_page_would_be_seen(page: Page, errors: list[str]) -> None:
    page.evaluate("console.error('planted')")
    page.evaluate("setTimeout(() => { throw new Error('thrown') })")
    page.wait_for_timeout(SOON)
    assert [text for text in ("planted", "thrown") if not any(text in one for one in errors)] == []


@pytest.mark.parametrize("name", FIRST_AND_LAST)
def test_notebook_7_shows_a_chapter_whole_and_runs_its_first_code(
    name: str, page: Page, lab: Lab, errors: list[str]
) -> None:
    folder = lab.root / f"notebook_7_{name}"
    shutil.copytree(ROOT / CHAPTERS / name, folder, ignore=shutil.ignore_patterns(".*"))
    chapter = nbformat.read(chapter_path(ROOT, name), as_version=nbformat.NO_CONVERT)
    notebook = NotebookPage.open(page, lab, f"{folder.name}/{name}.ipynb", door="notebooks")
    notebook.wait_for_cells(len(chapter.cells))
    first = code_cells(chapter)[0]
    notebook.run(first)
    assert notebook.complaints(first) == []
    assert page.locator("mjx-merror, .MathJax_Error").count() == 0
    end_kernels(lab)
    assert [error for error in errors if error != OWN_ERROR] == []
