"""The start page from its first cell to the next chapter's, with the keyboard alone."""

import shutil
from collections.abc import Iterator

import nbformat
import pytest
from nbformat import NotebookNode
from playwright.sync_api import Browser, Page, expect

from autograder.browser.conftest import CHAPTER, ROOT, SCREENSHOTS
from autograder.browser.lab import Lab, jupyter_lab
from autograder.browser.page import CELL, DONE, LOAD, NotebookPage, fresh_page, screenshot
from autograder.course_folder import CHAPTERS, CONFIG_NAME, chapter_path
from autograder.grading.cells import role_of

pytestmark = pytest.mark.slow
START = "00_start_here"
STOPS = 12  # a cell's own buttons come before the hints and links in it
COUNT_CLICKS = "window.clicks = 0; addEventListener('mousedown', () => window.clicks++, true)"
IN_CELL = "() => document.activeElement.closest('.jp-Cell')?.dataset.windowedListIndex"
TYPED = "return float((weights * values).sum() / weights.sum())"


@pytest.fixture(scope="module")
def start_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Return JupyterLab on a learner's copy of the start page and chapter 01."""
    checkout = tmp_path_factory.mktemp("keyboard")
    for name in (START, CHAPTER):
        shutil.copytree(ROOT / CHAPTERS / name, checkout / CHAPTERS / name, ignore=shutil.ignore_patterns(".*"))
    shutil.copy(ROOT / CONFIG_NAME, checkout)
    with jupyter_lab(checkout / CHAPTERS, tmp_path_factory.mktemp("home"), course=checkout) as running:
        yield running


@pytest.fixture(scope="module")
def start_page() -> NotebookNode:
    """Return the start page as it is handed out."""
    return nbformat.read(chapter_path(ROOT, START), as_version=nbformat.NO_CONVERT)


@pytest.fixture
def counted(browser: Browser) -> Iterator[Page]:
    """Return a page that counts how often a mouse button is pressed."""
    with fresh_page(browser) as page:
        page.add_init_script(COUNT_CLICKS)
        yield page


def press_until(page: Page, key: str, reached: str, most: int = STOPS) -> None:
    """Press a key until what has the focus matches a selector."""
    for _ in range(most):
        page.keyboard.press(key)
        if page.evaluate("selector => document.activeElement.matches(selector)", reached):
            return
    raise AssertionError(f"{key} does not reach {reached} in {most} steps")


def run_here(page: Page, notebook: NotebookPage, index: int) -> str:
    """Run the chosen cell with Shift+Enter, which goes on to the next; return what the cell says."""
    notebook.wait_for_connection()
    assert page.evaluate(IN_CELL) == str(index)
    page.keyboard.press("Shift+Enter")
    expect(notebook.cell(index).locator(".jp-InputPrompt")).to_have_text(DONE, timeout=CELL)
    return notebook.output(index)


def test_a_press_of_the_mouse_would_be_counted(counted: Page, start_lab: Lab) -> None:
    notebook = NotebookPage.open(counted, start_lab, f"{START}/{START}.ipynb")
    notebook.cell(0).click()
    assert counted.evaluate("window.clicks") == 1


def test_the_start_page_and_its_exercise_need_no_mouse(counted: Page, start_lab: Lab, start_page: NotebookNode) -> None:
    notebook = NotebookPage.open(counted, start_lab, f"{START}/{START}.ipynb")
    notebook.wait_for_cells(len(start_page.cells))
    keys, said = counted.keyboard, {}
    for index, cell in enumerate(start_page.cells):
        role = role_of(cell)
        if "Hint 1" in cell.source:
            press_until(counted, "Tab", "summary")
            keys.press("Space")
            expect(notebook.cell(index).locator("details").first).to_have_attribute("open", "")
            screenshot(counted, SCREENSHOTS, "keyboard-hint")
        if role == ("weighted_mean", "answer"):
            write_here(counted, cell.source)
        if cell.cell_type == "code":
            said[index] = run_here(counted, notebook, index)
        else:
            keys.press("Shift+Enter")
    assert "This machine is ready for the course." in next(iter(said.values()))
    assert any(text.startswith("weighted_mean: passed, ") for text in said.values())
    assert not any(notebook.complaints(index) for index in said)
    assert counted.evaluate("window.clicks") == 0


def write_here(page: Page, starter: str) -> None:
    """Go into the chosen cell, type over the two marked lines at its end, and leave it."""
    keys = page.keyboard
    assert starter.endswith("\n    # Your code replaces these two lines.\n    raise NotImplementedError()")
    keys.press("Enter")
    keys.press("ControlOrMeta+End")
    keys.press("Shift+Home")
    keys.press("Shift+ArrowUp")
    keys.type(TYPED)
    keys.press("Escape")


def test_a_chapter_is_opened_from_the_table_without_a_mouse(
    counted: Page, start_lab: Lab, start_page: NotebookNode
) -> None:
    notebook = NotebookPage.open(counted, start_lab, f"{START}/{START}.ipynb")
    notebook.wait_for_cells(len(start_page.cells))
    table = next(index for index, cell in enumerate(start_page.cells) if "chapter_table()" in cell.source)
    for _ in range(table):
        counted.keyboard.press("ArrowDown")
    run_here(counted, notebook, table)
    counted.keyboard.press("ArrowUp")
    press_until(counted, "Tab", f"a[href*='{CHAPTER}']")
    counted.keyboard.press("Enter")
    expect(counted.locator(".jp-Notebook:visible h1")).to_contain_text("Scaled dot-product attention", timeout=LOAD)
    assert counted.evaluate("window.clicks") == 0
