"""Drives a notebook in the browser through the same keys, clicks and pastes as a person's."""

import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route, TimeoutError, expect, sync_playwright

from autograder.browser.lab import Lab

CHROMIUM = "chromium"
CHROMIUM_MISSING = "Chromium is missing: apt-get install chromium"
SWITCHES = [
    "--no-sandbox",  # root in a container has none
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
VIEWPORT = (1280, 1000)
MILLISECONDS = 1000
LOAD = 90 * MILLISECONDS  # for a page to be there on a slow machine
CELL = 120 * MILLISECONDS  # for the slowest cell, which trains a model
WHOLE_CHAPTER = 300 * MILLISECONDS  # for all cells on a slow machine
REACTION = 30 * MILLISECONDS  # for a page to follow a click
STARTED = 5 * MILLISECONDS  # for a cell's number to give way to a star
PRESSES = 10  # a kernel that is still connecting misses the first
expect.set_options(timeout=REACTION)
DONE = re.compile(r"^\[\d+\]:$")
CONNECTED = re.compile(r"\| Idle$")
ELSEWHERE = re.compile(r"^(?:http|ws)s?://(?!localhost[:/])")
COMPLAINT = "[data-mime-type='application/vnd.jupyter.stderr'], [data-mime-type='application/vnd.jupyter.error']"


def find_chromium() -> str | None:
    """Return the system's Chromium, or None if there is none."""
    return shutil.which(CHROMIUM)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run the system's Chromium without a window until the block ends."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), headless=True, args=SWITCHES)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def fresh_page(browser: Browser, tolerated: str | None = None) -> Iterator[Page]:
    """Open a page without a past that may use the clipboard and reaches this machine only.

    Args:
        browser: The browser.
        tolerated: How the addresses begin that the page may ask for, in vain, without being blamed.

    Raises:
        AssertionError: afterwards, when the page asked for something that is not on this machine.
    """
    width, height = VIEWPORT
    context: BrowserContext = browser.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(LOAD)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    context.route(ELSEWHERE, refuse)
    try:
        yield context.new_page()
    finally:
        context.close()
    blamed = [url for url in asked if tolerated is None or not url.startswith(tolerated)]
    assert not blamed, f"The page asked the network for {blamed}."


def screenshot(page: Page, folder: Path, name: str) -> Path:
    """Take a picture of what the page shows now."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.png"
    page.screenshot(path=path)
    return path


def appears(locator: Locator) -> bool:
    """Return whether an element is there soon."""
    try:
        locator.wait_for(timeout=STARTED)
    except TimeoutError:
        return False
    return True


class NotebookPage:
    """A notebook that is open in JupyterLab or Notebook 7."""

    def __init__(self, page: Page):
        """Wrap a page that shows one notebook."""
        self.page = page
        self.notebook = page.locator(".jp-Notebook:visible")

    @classmethod
    def open(cls, page: Page, lab: Lab, path: str, door: str | None = None) -> "NotebookPage":
        """Open a notebook by its path and wait for its kernel.

        Args:
            page: A fresh page.
            lab: The server.
            path: The notebook, from the server's root.
            door: Where another interface than JupyterLab answers, such as `notebooks`.
        """
        # A workspace of its own, or JupyterLab would open what an earlier page had left open as well.
        page.goto(lab.url(f"{door or f'lab/workspaces/{secrets.token_hex(4)}/tree'}/{path}"))
        opened = cls(page)
        expect(opened.notebook.locator(".jp-Cell").first).to_be_visible(timeout=LOAD)
        opened.wait_for_kernel()
        return opened

    def wait_for_kernel(self) -> None:
        """Return when the kernel is there and has nothing to do."""
        self.page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for(timeout=LOAD)

    def wait_for_connection(self) -> None:
        """Return when the status bar calls the kernel idle: before, JupyterLab runs no cell."""
        self.page.get_by_text(CONNECTED).wait_for(timeout=LOAD)

    def cell(self, index: int) -> Locator:
        """Return a cell by its place in the notebook."""
        return self.notebook.locator(f'.jp-Cell[data-windowed-list-index="{index}"]')

    def wait_for_cells(self, number: int) -> None:
        """Return when JupyterLab, which adds the cells out of sight while it is idle, has added all of them."""
        expect(self.notebook.locator(".jp-Cell")).to_have_count(number, timeout=LOAD)

    def write(self, index: int, text: str) -> None:
        """Replace what stands in a cell by pasting over it."""
        cell = self.cell(index)
        shown = cell.locator(".jp-MarkdownOutput")
        if shown.is_visible():
            shown.dblclick()
        cell.locator(".cm-content").click(position={"x": 2, "y": 2})
        self.page.evaluate("text => navigator.clipboard.writeText(text)", text)
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.press("ControlOrMeta+V")
        expect(cell.locator(".cm-line")).to_have_text(text.split("\n"))

    def type_over(self, index: int, line: str, text: str) -> None:
        """Replace one line in a cell key by key, with the editor's own indentation and brackets in play."""
        found = self.cell(index).locator(".cm-line", has_text=line)
        found.click()
        self.page.keyboard.press("Home")
        self.page.keyboard.press("Shift+End")
        self.page.keyboard.type(text)
        expect(self.cell(index).locator(".cm-line", has_text=text)).to_have_count(1)

    def run(self, index: int) -> str:
        """Run a cell with Ctrl+Enter and wait for its end; return what it says."""
        prompt = self.cell(index).locator(".jp-InputPrompt")
        before = prompt.inner_text()
        prompt.click()
        for _ in range(PRESSES):
            self.page.keyboard.press("ControlOrMeta+Enter")
            if appears(prompt.filter(has_not_text=before)):
                break
        expect(prompt).to_have_text(DONE, timeout=CELL)
        self.wait_for_kernel()
        return self.output(index)

    def run_all(self, code: Sequence[int]) -> None:
        """Choose Run All Cells from the menu and wait for the end of every cell.

        Args:
            code: The places of the cells that run.
        """
        self.wait_for_connection()
        self.cell(code[0]).locator(".jp-InputPrompt").click()
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        for index in code:
            prompt = self.cell(index).locator(".jp-InputPrompt")
            expect(prompt, f"cell {index} should have run").to_have_text(DONE, timeout=WHOLE_CHAPTER)
        self.wait_for_kernel()

    def show(self, index: int) -> None:
        """Bring the end of a cell, with what it says, into view."""
        self.cell(index).evaluate("cell => cell.scrollIntoView({block: 'end'})")

    def render(self, index: int) -> None:
        """Run a text cell, which shows it as a reader sees it."""
        self.cell(index).locator(".cm-content").press("ControlOrMeta+Enter")
        expect(self.cell(index).locator(".jp-MarkdownOutput")).to_be_visible()

    def output(self, index: int) -> str:
        """Return the text of a cell's outputs."""
        return "\n".join(self.cell(index).locator(".jp-OutputArea-output").all_inner_texts())

    def complaints(self, index: int) -> list[str]:
        """Return what a cell wrote on stderr, and its error."""
        return self.cell(index).locator(COMPLAINT).all_inner_texts()

    def has_picture(self, index: int) -> bool:
        """Return whether a cell shows a plot or a widget."""
        return self.cell(index).locator(".jp-OutputArea-output").locator("img, svg").count() > 0

    def save(self) -> None:
        """Save with Ctrl+S and wait until nothing is left unsaved."""
        self.page.keyboard.press("ControlOrMeta+S")
        expect(self.page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)

    def validate(self) -> str:
        """Press nbgrader's Validate button; return what its dialog says, and leave it open."""
        self.page.get_by_role("button", name="Validate").click()
        dialog = self.page.locator(".jp-Dialog")
        dialog.wait_for(timeout=CELL)
        return dialog.inner_text()

    def close_dialog(self) -> None:
        """Press the dialog's button."""
        self.page.locator(".jp-Dialog .jp-Dialog-footer button").last.click()
        expect(self.page.locator(".jp-Dialog")).to_have_count(0)
