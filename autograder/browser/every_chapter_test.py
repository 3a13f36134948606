"""Every chapter as it is released: opened in JupyterLab, run from top to bottom, and every control moved by a key."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from playwright.sync_api import Browser, Locator, Page, expect

from autograder.browser.conftest import ROOT, SCREENSHOTS
from autograder.browser.lab import Lab, end_kernels, jupyter_lab
from autograder.browser.measuring import code_cells
from autograder.browser.page import COMPLAINT, REACTION, NotebookPage, fresh_page, screenshot
from autograder.course_folder import CHAPTERS, CONFIG_NAME, chapter_names, chapter_path
from autograder.grading.cells import role_of

pytestmark = pytest.mark.slow
ASK_AGAIN = 50  # milliseconds
GO_ON = "raises-exception"  # JupyterLab runs the cells after a failed one only where the failed one has this tag
QUICK = "COURSE_QUICK"  # long cells take a few steps: what they learn is tested elsewhere
WORDS = "p[role=status]"
CONTROLS = ".noUi-handle, input[type=checkbox], button.widget-toggle-button, select"
STATE = """control => [control.checked, control.value, control.classList.contains("mod-active"),
    control.getAttribute("aria-valuetext"), control.closest(".jupyter-widgets").innerText].join()"""
KEYS = """control => {
    if (control.getAttribute("role") === "slider") {
        const at = name => Number(control.getAttribute(`aria-value${name}`));
        return at("min") === at("max") ? null : at("now") === at("max") ? "ArrowLeft" : "ArrowRight";
    }
    if (control.tagName === "SELECT")
        return `Space ${control.selectedIndex ? "ArrowUp" : "ArrowDown"} Enter`;
    return "Space";
}"""
CUT = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"
WITHOUT_WIDGET = {"00_start_here"}  # every other chapter has one to explore
NAMES = sorted(path.stem for path in (ROOT / CHAPTERS).glob("*/*.ipynb") if path.stem == path.parent.name)


@dataclass(frozen=True)
class Visit:
    """What a learner sees who opens a chapter and runs it without answering anything.

    Args:
        complaints: What cells wrote on stderr, and their errors, by their place.
        broken_formulas: Formulas that could not be shown.
        words: Of every widget, before and after its first control was moved once.
        unmoved: What of each widget's controls followed no key, as it is shown.
        cut: Values beside sliders that are not shown whole.
    """

    name: str
    released: NotebookNode
    complaints: dict[int, list[str]]
    broken_formulas: list[str]
    words: dict[int, tuple[str, str]] = field(default_factory=dict)
    unmoved: dict[int, list[str]] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def learners_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Return JupyterLab on a copy of all chapters, in which a failed check does not stop the cells after it."""
    checkout = tmp_path_factory.mktemp("every_chapter")
    shutil.copytree(ROOT / CHAPTERS, checkout / CHAPTERS, ignore=shutil.ignore_patterns(".*"))
    shutil.copy(ROOT / CONFIG_NAME, checkout)
    for name in NAMES:
        notebook = read(chapter_path(checkout, name))
        for cell in notebook.cells:
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), GO_ON]
        nbformat.write(notebook, chapter_path(checkout, name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(QUICK, "1")
        with jupyter_lab(checkout / CHAPTERS, tmp_path_factory.mktemp("home"), course=checkout) as running:
            yield running


@pytest.fixture(scope="module", params=NAMES)
def visit(request: pytest.FixtureRequest, browser: Browser, learners_lab: Lab) -> Visit:
    """Return what happened in one chapter, and leave pictures of its top and of every widget."""
    name = request.param
    released = read(chapter_path(ROOT, name))
    for stale in SCREENSHOTS.glob(f"chapter-{name}-*.png"):
        stale.unlink()
    with fresh_page(browser) as page:
        notebook = NotebookPage.open(page, learners_lab, f"{name}/{name}.ipynb")
        notebook.wait_for_cells(len(released.cells))
        screenshot(page, SCREENSHOTS, f"chapter-{name}-top")
        notebook.run_all(code_cells(released))
        seen = Visit(name, released, complaints(notebook, released), broken_formulas(page))
        for index in code_cells(released):
            if notebook.cell(index).locator(WORDS).count():
                picture = SCREENSHOTS / f"chapter-{name}-widget-{len(seen.words) + 1}.png"
                seen.words[index] = move_once(notebook, index, picture)
                seen.cut.extend(notebook.cell(index).locator(".widget-readout").evaluate_all(CUT))
                seen.unmoved[index] = [
                    state for state in map(press, notebook.cell(index).locator(CONTROLS).all()) if state
                ]
    end_kernels(learners_lab)
    return seen


def read(path: Path) -> NotebookNode:
    """Read a notebook as it is."""
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def complaints(notebook: NotebookPage, released: NotebookNode) -> dict[int, list[str]]:
    """Return what cells wrote on stderr, and their errors."""
    # A cell out of sight has its words, but they are not laid out: `inner_text` would not find them.
    found = {index: notebook.cell(index).locator(COMPLAINT).all_text_contents() for index in code_cells(released)}
    return {index: texts for index, texts in found.items() if texts}


def broken_formulas(page: Page) -> list[str]:
    """Return the formulas that MathJax marks as faulty."""
    return page.locator("mjx-merror, .MathJax_Error").all_text_contents()


def move_once(notebook: NotebookPage, index: int, picture: Path) -> tuple[str, str]:
    """Press one key on a widget's first control; return its words before and after, and picture the widget."""
    cell = notebook.cell(index)
    notebook.show(index)
    words, control = cell.locator(WORDS).first, first_control(cell)
    before = words.inner_text()
    press(control)
    expect(words, f"the words of the widget in cell {index}").not_to_have_text(before, timeout=REACTION)
    cell.locator(".jp-OutputArea").first.screenshot(path=picture)
    return before, words.inner_text()


def press(control: Locator) -> str | None:
    """Press the keys that move a control; return its state if it does not follow. One of a single value has none."""
    keys, before = control.evaluate(KEYS), control.evaluate(STATE)
    if keys is None:
        return None
    control.focus()
    for key in keys.split():
        control.page.keyboard.press(key)
    for _ in range(REACTION // ASK_AGAIN):
        if control.evaluate(STATE) != before:
            return None
        control.page.wait_for_timeout(ASK_AGAIN)
    return before


def first_control(cell: Locator) -> Locator:
    """Return a widget's first slider, or its first switch if it has no slider."""
    slider = cell.locator(".noUi-handle").first
    return slider if slider.count() else cell.locator("input[type=checkbox], button.widget-toggle-button").first


def test_every_source_has_a_chapter_here() -> None:
    assert chapter_names(ROOT) == NAMES


def test_only_checks_of_unanswered_exercises_complain(visit: Visit) -> None:
    roles = {index: role_of(visit.released.cells[index]) for index in visit.complaints}
    foreign = {index: visit.complaints[index] for index, role in roles.items() if role is None or role[1] != "test"}
    assert foreign == {}


def test_every_unanswered_exercise_is_told_so(visit: Visit) -> None:
    roles = {index: role_of(cell) for index, cell in enumerate(visit.released.cells)}
    tests = [index for index, role in roles.items() if role is not None and role[1] == "test"]
    assert sorted(visit.complaints) == tests


def test_every_formula_is_shown(visit: Visit) -> None:
    assert visit.broken_formulas == []


def test_every_widget_follows_a_key_and_its_words_say_so(visit: Visit) -> None:
    assert bool(visit.words) == (visit.name not in WITHOUT_WIDGET), f"the chapter shows {len(visit.words)} widgets"
    assert all(before.strip() and after.strip() and before != after for before, after in visit.words.values())


def test_every_control_of_every_widget_follows_a_key(visit: Visit) -> None:
    assert [state for states in visit.unmoved.values() for state in states] == []


def test_the_value_beside_every_slider_is_shown_whole(visit: Visit) -> None:
    assert visit.cut == []


def test_top_and_every_widget_have_a_picture_and_no_other_is_left(visit: Visit) -> None:
    pictures = ["top", *(f"widget-{number}" for number in range(1, len(visit.words) + 1))]
    taken = {path.name for path in SCREENSHOTS.glob(f"chapter-{visit.name}-*.png")}
    assert taken == {f"chapter-{visit.name}-{picture}.png" for picture in pictures}
