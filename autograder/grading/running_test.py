"""How one notebook's checks are asked for."""

import nbformat

from autograder.grading.judged import Judged
from autograder.grading.kit import ChapterKit, CheckCall
from autograder.grading.limits import Limits
from autograder.grading.running import NotebookRun, Terms
from autograder.grading.session import Execution
from autograder.verdict import Verdict

CALLS = {"a": CheckCall("f", "f", False), "b": CheckCall("f", "f", True), "c": CheckCall("g", "g", True)}


class FakeKernel:
    """A kernel whose checks all take too long."""

    def __init__(self) -> None:
        self.alive, self.asked = True, []

    def verdict(self, exercise: str, hidden: bool, seed: int, solution: str) -> Judged:
        """Note what was asked for."""
        self.asked.append((exercise, hidden))
        return Judged(Verdict(False, exercise, "one", None, "too slow", seed), timed_out=True)

    def execute(self, source: str, seconds: float) -> Execution:
        """Run nothing; a cell that says so takes long."""
        return Execution("ok", seconds=3.0 if source == "slow" else 0.0)


def run_of(*names: str) -> tuple[FakeKernel, NotebookRun]:
    """Run a notebook with these test cells; any other name is a cell of the student's."""
    cells = []
    for name in names:
        marks = {"grade_id": name, "grade": name in CALLS, "solution": False, "points": 2}
        cells.append(nbformat.v4.new_code_cell("x", metadata={"nbgrader": marks}))
    kernel = FakeKernel()
    run = NotebookRun(
        kernel,  # type: ignore[arg-type]
        nbformat.v4.new_notebook(cells=cells),
        ChapterKit("01", "", calls=CALLS),
        Terms("ada", b"k", 1.0, Limits()),
    )
    run.run()
    return kernel, run


def test_a_check_that_did_not_return_in_time_is_not_waited_for_again() -> None:
    kernel, run = run_of("a", "b", "c")
    assert kernel.asked == [("f", False), ("g", True)]
    assert run.scores == {"a": 0.0, "b": 0.0, "c": 0.0}
    assert run.notebook.cells[1].outputs[-1].evalue == "too slow"


def test_it_is_asked_again_where_the_function_may_be_another_one() -> None:
    assert run_of("a", "cell", "b")[0].asked == [("f", False), ("f", True)]


def test_the_hidden_cases_say_nothing_of_the_visible_ones() -> None:
    assert run_of("b", "a")[0].asked == [("f", True), ("f", False)]


def test_a_slow_cell_is_noted_by_its_place_and_first_line() -> None:
    _, run = run_of("own", "a")
    assert run.slow_cells == {}
    run.notebook.cells[0].source = "slow"
    run.run()
    assert run.slow_cells == {"cell 1: slow": 3.0}
