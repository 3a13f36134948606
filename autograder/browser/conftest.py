"""What the browser tests share: one Chromium, one course, one learner's server, and one graded class."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from playwright.sync_api import Browser, Page

from autograder.browser.lab import Lab, jupyter_lab
from autograder.browser.page import CHROMIUM_MISSING, NotebookPage, chromium, find_chromium, fresh_page, screenshot
from autograder.browser.story import SOFTMAX_OVER_QUERIES, Story, solve_chapter
from autograder.build import answered_notebook, build_all, model_answers
from autograder.course_folder import CHAPTERS, CONFIG_NAME, SOLUTIONS, chapter_path, source_path

CHAPTER = "01_attention"
LEARNER = "learner"  # who solves the chapter in the browser
MISTAKEN = "mistaken"  # whose notebook is made up: right but for one misconception
ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "screenshots"


@dataclass(frozen=True)
class GradedClass:
    """What `course grade` made of two submissions."""

    course: Path
    output: str
    exit_code: int


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Return the system's Chromium."""
    if find_chromium() is None:
        pytest.skip(CHROMIUM_MISSING)
    with chromium() as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Return a page without a past, which may not ask the network."""
    with fresh_page(browser) as opened:
        yield opened


@pytest.fixture(scope="package")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a course folder of chapter 01 alone, built from its source."""
    folder = tmp_path_factory.mktemp("course")
    (folder / SOLUTIONS).mkdir()
    shutil.copy(ROOT / CONFIG_NAME, folder)
    shutil.copy(source_path(ROOT, CHAPTER), folder / SOLUTIONS)
    build_all(folder, CHAPTER)
    return folder


@pytest.fixture(scope="package")
def released(course: Path) -> NotebookNode:
    """Return the chapter as a student is given it."""
    return nbformat.read(chapter_path(course, CHAPTER), as_version=nbformat.NO_CONVERT)


@pytest.fixture(scope="package")
def lab(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Return JupyterLab on a learner's own copy of the chapters."""
    checkout = tmp_path_factory.mktemp("learner")
    shutil.copytree(course / CHAPTERS, checkout / CHAPTERS)
    shutil.copy(course / CONFIG_NAME, checkout)
    with jupyter_lab(checkout / CHAPTERS, tmp_path_factory.mktemp("home"), course=checkout) as running:
        yield running


@pytest.fixture
def copy_of_chapter(lab: Lab, course: Path) -> str:
    """Return the path, for the learner's server, of an untouched chapter that only this test opens."""
    path = lab.root / f"copy_{len(list(lab.root.iterdir()))}" / f"{CHAPTER}.ipynb"
    path.parent.mkdir()
    shutil.copy(chapter_path(course, CHAPTER), path)
    return str(path.relative_to(lab.root))


@pytest.fixture
def picture(page: Page) -> Callable[[str], Path]:
    """Return what takes a picture of the test's page under a name."""
    return lambda name: screenshot(page, SCREENSHOTS, name)


@pytest.fixture(scope="package")
def story(browser: Browser, lab: Lab, course: Path, released: NotebookNode) -> Story:
    """Return what a learner sees who solves chapter 01 in JupyterLab, and leave the solved notebook saved."""
    with fresh_page(browser) as page:
        notebook = NotebookPage.open(page, lab, f"{CHAPTER}/{CHAPTER}.ipynb")
        notebook.wait_for_cells(len(released.cells))
        answers = model_answers(course, CHAPTER)
        return solve_chapter(notebook, released, answers, lambda name: screenshot(page, SCREENSHOTS, f"learner-{name}"))


@pytest.fixture(scope="package")
def graded(story: Story, lab: Lab, course: Path) -> GradedClass:
    """Return the class of the learner and of somebody mistaken, graded by `course grade`."""
    answers = model_answers(course, CHAPTER) | {"scaled_dot_product_attention": SOFTMAX_OVER_QUERIES}
    mistaken = nbformat.writes(answered_notebook(course, CHAPTER, answers))
    solved = (lab.root / CHAPTER / f"{CHAPTER}.ipynb").read_text(encoding="utf-8")
    for student, notebook in ((LEARNER, solved), (MISTAKEN, mistaken)):
        folder = course / "submitted" / student / CHAPTER
        folder.mkdir(parents=True)
        (folder / f"{CHAPTER}.ipynb").write_text(notebook, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "autograder.cli", "grade", CHAPTER, "--course", str(course)],
        capture_output=True,
        text=True,
    )
    return GradedClass(course, done.stdout + done.stderr, done.returncode)
