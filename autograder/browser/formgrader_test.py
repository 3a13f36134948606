"""What a person gives by hand in formgrader, on either database, while the class is graded again."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, expect

from autograder.browser.conftest import CHAPTER, SCREENSHOTS
from autograder.browser.formgrader import MATHJAX, Formgrader
from autograder.browser.lab import jupyter_lab
from autograder.browser.page import fresh_page, screenshot
from autograder.browser.story import BROKEN, SOFTMAX_OVER_QUERIES, WRITTEN_ANSWER
from autograder.build import answered_notebook, model_answers
from autograder.course_folder import CONFIG_NAME
from autograder.grading.database import POSTGRESQL, SQLITE, database_url
from autograder.grading.results import read_results
from autograder.testing.private_postgres import PrivatePostgres

pytestmark = pytest.mark.slow
ADA, BEA = "ada", "bea"
WRITTEN, ITS_EXERCISE = "why_the_root-written", "why_the_root"
HIDDEN_TEST = f"{BROKEN}-hidden-test"
POINTS, MOST_POINTS, POINTS_IN_ALL = 2.5, 4.0, 34.5
COMMENT = "Schön: the spread grows like √d_k. Which gradient is lost, and why?"
TOTAL, TOTAL_OF_BEA = "34.5 / 36", "36 / 36"


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def graded_course(request: pytest.FixtureRequest, course: Path, tmp_path: Path) -> Path:
    """Return a course folder with a graded class of two, whose gradebook lies where nbgrader_config.py says."""
    folder = tmp_path / "course"
    shutil.copytree(course, folder, ignore=shutil.ignore_patterns("submitted", "results", "gradebook.db*"))
    if request.param == POSTGRESQL:
        server: PrivatePostgres = request.getfixturevalue("postgres")
        url = database_url(server.url(server.new_database()), folder)
        with (folder / CONFIG_NAME).open("a", encoding="utf-8") as config:
            config.write(f'c.CourseDirectory.db_url = "{url}"\n')
    hand_in(folder, ADA, {BROKEN: SOFTMAX_OVER_QUERIES})
    hand_in(folder, BEA, {})
    finish(start_grading(folder))
    assert (folder / "gradebook.db").exists() == (request.param == SQLITE)
    return folder


def hand_in(course: Path, student: str, mistakes: dict[str, str]) -> None:
    """Hand in the right answers, but for some."""
    answers = model_answers(course, CHAPTER) | {WRITTEN: WRITTEN_ANSWER} | mistakes
    path = course / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(answered_notebook(course, CHAPTER, answers), path)


def start_grading(course: Path, *options: str) -> subprocess.Popen[str]:
    """Start `course grade`."""
    command = [sys.executable, "-m", "autograder.cli", "grade", CHAPTER, "--course", str(course), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(run: subprocess.Popen[str]) -> None:
    """Wait for a run to end well."""
    said, _ = run.communicate()
    assert run.returncode == 0, said


def regrade_meanwhile(formgrader: Formgrader, course: Path) -> int:
    """Grade everything again; give points and load pages until that ends. Return how often a page was loaded."""
    run, loaded = start_grading(course, "--force"), 0
    try:
        formgrader.open_submission(BEA)
        formgrader.give_points(WRITTEN, MOST_POINTS)
        while run.poll() is None:
            formgrader.reload()
            expect(formgrader.points(WRITTEN)).to_have_value(f"{MOST_POINTS:g}")
            loaded += run.poll() is None
        finish(run)
    finally:
        run.kill()
    return loaded


def test_what_a_person_gives_survives_a_grading_that_runs_meanwhile(
    browser: Browser, graded_course: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    database = request.node.callspec.params["graded_course"]
    with jupyter_lab(graded_course, tmp_path) as lab, fresh_page(browser, tolerated=MATHJAX) as page:
        formgrader = Formgrader(page, lab, CHAPTER)
        formgrader.open_submission(ADA)
        expect(formgrader.points(HIDDEN_TEST)).to_have_attribute("placeholder", "0")
        formgrader.give_points(WRITTEN, POINTS)
        formgrader.give_comment(WRITTEN, COMMENT)
        hand_in(graded_course, ADA, {WRITTEN: f"{WRITTEN_ANSWER} And so it stays."})
        assert regrade_meanwhile(formgrader, graded_course) > 0
        assert stands(graded_course) == ("needs_manual", POINTS_IN_ALL)

        formgrader.open_submission(ADA)
        expect(formgrader.points(HIDDEN_TEST)).not_to_have_attribute("placeholder", "0")
        expect(formgrader.points(WRITTEN)).to_have_value(f"{POINTS:g}")
        expect(formgrader.comment(WRITTEN)).to_have_value(COMMENT)
        screenshot_of(formgrader.comment(WRITTEN), f"formgrader-by-hand-{database}")
        formgrader.resolve(WRITTEN)
        formgrader.open_class()
        for total in (TOTAL, TOTAL_OF_BEA):
            expect(page.get_by_role("row").filter(has_text=total)).to_be_visible()
        screenshot(page, SCREENSHOTS, f"formgrader-totals-{database}")

        finish(start_grading(graded_course))
        assert stands(graded_course) == ("graded", POINTS_IN_ALL)
        page.goto((graded_course / "feedback" / ADA / CHAPTER / f"{CHAPTER}.html").as_uri())
        expect(page.get_by_text(f"{TOTAL.replace('/', 'of')} points")).to_be_visible()
        expect(page.get_by_role("row", name=ITS_EXERCISE)).to_contain_text(f"{POINTS:g} of {MOST_POINTS:g}")
        expect(page.get_by_text(COMMENT)).to_be_visible()
        screenshot_of(page.get_by_text(COMMENT), f"feedback-by-hand-{database}")


def stands(course: Path) -> tuple[str, float]:
    """Return what the results say of the submission that was graded by hand."""
    result = read_results(course, CHAPTER).students[ADA]
    return result.status, result.points


def screenshot_of(place: Locator, name: str) -> None:
    """Take a picture of the page around a place."""
    place.scroll_into_view_if_needed()
    screenshot(place.page, SCREENSHOTS, name)
