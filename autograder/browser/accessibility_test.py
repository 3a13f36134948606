"""What a screen reader meets: every chapter as run, a feedback page and the class report, looked at by axe-core."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from nbformat import NotebookNode
from playwright.sync_api import Browser

from autograder.authoring.execute import execute
from autograder.browser.conftest import CHAPTER, MISTAKEN, ROOT, GradedClass
from autograder.build import chapter_names, starter_notebook
from autograder.reports.class_report import write_report
from autograder.reports.feedback import page as page_of

pytestmark = pytest.mark.slow
PHONE = 390  # pixels
PLACES = "found => found.map(one => one.getBoundingClientRect()).map(one => [one.left, one.right])"
SERIOUS = ("serious", "critical")
ABOUT = {"student": "a learner", "assignment": "", "score": 0.0, "max_score": 0.0, "late_penalty": 0.0}
PLANTED = (
    "<html lang='en'><head><title>x</title></head><body><img src='data:,'><p style='color:#ccc'>pale</p></body></html>"
)


def complaints(browser: Browser, path: Path) -> list[str]:
    """Return axe's serious complaints about a page."""
    context = browser.new_context(bypass_csp=True)  # axe is a script, and our pages allow none
    try:
        page = context.new_page()
        page.goto(path.as_uri())
        found = Axe().run(page).response["violations"]
    finally:
        context.close()
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in SERIOUS]


def test_axe_finds_what_is_planted(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "planted.html"
    path.write_text(PLANTED)
    found = complaints(browser, path)
    assert {line.split(":")[0] for line in found} == {"image-alt", "color-contrast"}


@pytest.mark.parametrize("chapter", chapter_names(ROOT))
def test_a_chapter_as_run_has_no_serious_fault(chapter: str, browser: Browser, tmp_path: Path) -> None:
    executed: NotebookNode = execute(starter_notebook(ROOT, chapter), tmp_path, quick=True).notebook
    path = tmp_path / f"{chapter}.html"
    path.write_text(page_of(executed, ABOUT), encoding="utf-8")
    assert complaints(browser, path) == []


def test_feedback_and_report_have_no_serious_fault(browser: Browser, graded: GradedClass) -> None:
    feedback = graded.course / "feedback" / MISTAKEN / CHAPTER / f"{CHAPTER}.html"
    assert complaints(browser, feedback) == []
    assert complaints(browser, write_report(graded.course, CHAPTER)) == []


def test_what_was_said_is_readable_on_a_phone(browser: Browser, graded: GradedClass) -> None:
    feedback = graded.course / "feedback" / MISTAKEN / CHAPTER / f"{CHAPTER}.html"
    for path in (feedback, write_report(graded.course, CHAPTER)):
        page = browser.new_page(viewport={"width": PHONE, "height": 800})
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE
        places = page.locator(".message").evaluate_all(PLACES)
        assert places
        assert all(right - left > PHONE / 2 and right <= PHONE for left, right in places)
        page.close()
