"""The chapter's explorer, moved by keyboard alone."""

from collections.abc import Callable

import pytest
from nbformat import NotebookNode
from playwright.sync_api import Locator, Page, expect

from autograder.browser.lab import Lab
from autograder.browser.page import NotebookPage

pytestmark = pytest.mark.slow
EXPLORER = "attention_explorer()"
STOPS = 3  # a slider's number, which can be typed over, comes between two sliders


def tab_to(control: Locator) -> None:
    """Press Tab until a control has the focus, and fail when it is not among the next few stops."""
    for _ in range(STOPS):
        if control.evaluate("element => element === document.activeElement"):
            return
        control.page.keyboard.press("Tab")
    expect(control).to_be_focused()


def test_every_control_of_the_explorer_answers_to_keys_and_the_words_follow(
    page: Page, lab: Lab, copy_of_chapter: str, released: NotebookNode, picture: Callable
) -> None:
    imports = next(i for i, cell in enumerate(released.cells) if "import attention_explorer" in cell.source)
    place = next(i for i, cell in enumerate(released.cells) if cell.source == EXPLORER)
    notebook = NotebookPage.open(page, lab, copy_of_chapter)
    notebook.wait_for_cells(len(released.cells))
    notebook.run(imports)
    notebook.run(place)
    cell = notebook.cell(place)
    words, handles = cell.locator("p[role=status]"), cell.locator(".noUi-handle")
    notebook.show(place)
    start = words.inner_text()
    picture("widget-at-the-start")
    handles.first.focus()
    for number in range(handles.count()):
        tab_to(handles.nth(number))
        before = words.inner_text()
        page.keyboard.press("ArrowRight")
        expect(words, f"slider {number}").not_to_have_text(before)
    tab_to(cell.get_by_role("checkbox"))
    page.keyboard.press("Space")
    expect(words).to_contain_text("scores not divided by")
    picture("widget-moved-by-keyboard")
    tab_to(cell.get_by_role("button", name="Start again"))
    page.keyboard.press("Enter")
    expect(words).to_have_text(start)
