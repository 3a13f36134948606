"""What an instructor sees of a graded class: formgrader in JupyterLab, and a feedback page."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from autograder.browser.conftest import CHAPTER, LEARNER, MISTAKEN, SCREENSHOTS, GradedClass
from autograder.browser.formgrader import MATHJAX
from autograder.browser.lab import jupyter_lab
from autograder.browser.page import fresh_page, screenshot
from autograder.browser.story import BROKEN, WRITTEN_ANSWER
from autograder.exercise import find_exercise
from autograder.reports.class_report import write_report

pytestmark = pytest.mark.slow
POINTS = {LEARNER: "32 / 36", MISTAKEN: "27 / 36"}
ITS_HEADING = "Exercise: scaled dot-product attention"


def open_formgrader(page: Page, address: str) -> FrameLocator:
    """Open JupyterLab and choose formgrader from its menu."""
    page.goto(address)
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_role("menuitem", name="Formgrader").click()
    return page.frame_locator("iframe")


def test_formgrader_shows_the_class_and_a_submission(browser: Browser, graded: GradedClass, tmp_path: Path) -> None:
    with jupyter_lab(graded.course, tmp_path) as lab, fresh_page(browser, tolerated=MATHJAX) as page:
        formgrader = open_formgrader(page, lab.url("lab"))
        row = formgrader.get_by_role("row", name=CHAPTER)
        expect(row).to_be_visible()
        screenshot(page, SCREENSHOTS, "formgrader-assignments")
        row.get_by_role("link", name=str(len(POINTS)), exact=True).click()
        for student, points in POINTS.items():
            expect(formgrader.get_by_role("row", name=student)).to_contain_text(points)
        screenshot(page, SCREENSHOTS, "formgrader-submissions")
        page.goto(lab.url(f"formgrader/gradebook/{CHAPTER}/{CHAPTER}"))
        page.get_by_role("row", name=POINTS[LEARNER]).get_by_role("link").first.click()
        expect(page.get_by_text(WRITTEN_ANSWER[:40])).to_be_visible()
        page.get_by_text(WRITTEN_ANSWER[:40]).scroll_into_view_if_needed()
        screenshot(page, SCREENSHOTS, "formgrader-written-answer")


def test_a_feedback_page_shows_points_and_the_diagnosis(browser: Browser, graded: GradedClass) -> None:
    words = find_exercise(BROKEN).misconceptions["softmax_over_queries"].words.split()
    for student, points in POINTS.items():
        with fresh_page(browser) as page:
            page.goto((graded.course / "feedback" / student / CHAPTER / f"{CHAPTER}.html").as_uri())
            expect(page.get_by_text(f"{points.replace('/', 'of')} points")).to_be_visible()
            screenshot(page, SCREENSHOTS, f"feedback-{student}-top")
            diagnosis = page.get_by_text(" ".join(words[:6]))
            if student == MISTAKEN:
                expect(diagnosis.first).to_be_visible()  # at the top; below, the cell says it again
                page.get_by_role("link", name=f"Read again: {BROKEN}").click()
                screenshot(page, SCREENSHOTS, "feedback-read-again")
                expect(page.get_by_role("heading", name=ITS_HEADING)).to_be_in_viewport()
            else:
                expect(diagnosis).to_have_count(0)


def test_the_class_report_can_be_read(browser: Browser, graded: GradedClass) -> None:
    report = write_report(graded.course, CHAPTER)
    with fresh_page(browser) as page:
        page.goto(report.as_uri())
        expect(page.get_by_role("row", name=MISTAKEN).first).to_be_visible()
        expect(page.get_by_role("row", name="softmax over queries")).to_be_visible()
        screenshot(page, SCREENSHOTS, "class-report-top")
        page.get_by_role("heading", name="What the class believes").scroll_into_view_if_needed()
        screenshot(page, SCREENSHOTS, "class-report-beliefs")
