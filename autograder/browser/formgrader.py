"""Drives nbgrader's formgrader as a person who grades by hand does."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Locator, Page, Response, expect

from autograder.browser.lab import Lab

MATHJAX = "https://cdnjs.cloudflare.com/ajax/libs/mathjax/"  # nbgrader's pages ask for it, and read without


class Formgrader:
    """Formgrader on one chapter, in a page of its own."""

    def __init__(self, page: Page, lab: Lab, chapter: str):
        """Sign a fresh page in, at JupyterLab: a sign-in at one of formgrader's pages holds for that address alone."""
        self.page, self.lab, self.chapter = page, lab, chapter
        page.goto(lab.url("lab"))

    def open_class(self) -> None:
        """Open the chapter's list of submissions."""
        self._open(f"gradebook/{self.chapter}/{self.chapter}")

    def open_submission(self, student: str) -> None:
        """Open a student's notebook as it is graded."""
        self._open(f"manage_students/{student}/{self.chapter}")
        self.page.get_by_role("link", name=self.chapter, exact=True).last.click()
        self.wait_for_grades()

    def reload(self) -> None:
        """Load the open submission again."""
        loaded = self.page.reload()
        assert loaded is not None
        assert loaded.ok, loaded.status_text
        self.wait_for_grades()

    def wait_for_grades(self) -> None:
        """Return when the page has the gradebook's points and comments; what is typed before is not saved."""
        for fields in (".score", ".comment"):
            expect(self.page.locator(f"{fields}[placeholder]").first).to_be_visible()

    def points(self, cell: str) -> Locator:
        """Return the field of a cell's points, which shows a person's and holds the automatic ones behind them."""
        return self.page.locator(f"input.score[id='{cell}']")

    def comment(self, cell: str) -> Locator:
        """Return the field of the comment on a cell."""
        return self.page.locator(f"textarea[id='{cell}-comment']")

    def give_points(self, cell: str, points: float) -> None:
        """Type points and leave the field; return when they are saved."""
        with self._saved("grade"):
            self._type(self.points(cell), f"{points:g}")

    def give_comment(self, cell: str, text: str) -> None:
        """Type a comment and leave the field; return when it is saved."""
        with self._saved("comment"):
            self._type(self.comment(cell), text)

    def resolve(self, cell: str) -> None:
        """Say that the points which a person gave before still hold; return when that is saved."""
        with self._saved("grade"):
            answer = self.page.locator(".nbgrader_cell").filter(has=self.points(cell))
            answer.get_by_role("button", name="Resolve").click()

    def _open(self, path: str) -> None:
        loaded = self.page.goto(self.lab.url(f"formgrader/{path}"))
        assert loaded is not None
        assert loaded.ok, loaded.status_text

    def _type(self, field: Locator, text: str) -> None:
        field.click()
        field.fill("")
        field.press_sequentially(text)
        field.blur()

    @contextmanager
    def _saved(self, what: str) -> Iterator[None]:
        """Wait for the server's answer to what the block saves."""

        def answers(response: Response) -> bool:
            return response.request.method == "PUT" and f"/formgrader/api/{what}/" in response.url

        with self.page.expect_response(answers) as saved:
            yield
        assert saved.value.ok, saved.value.status_text
