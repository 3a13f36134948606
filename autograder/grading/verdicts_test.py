"""What is read out of a graded notebook."""

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output

from autograder.grading.cells import GradedCell
from autograder.grading.results import ExerciseResult
from autograder.grading.verdicts import LONGEST_QUOTE, VERDICT_TYPE, Score, exercise_results, explain_error, quote

TIMEOUT = 60.0
MARKS = [GradedCell("double-test", "double", 1, False), GradedCell("double-hidden-test", "double", 2, False)]


def verdict(passed: bool, **fields) -> NotebookNode:
    """Return the output in which a check leaves its verdict."""
    content = {"passed": passed, "exercise": "double", "misconception": None, "message": "why", "seed": 7} | fields
    return new_output("display_data", {VERDICT_TYPE: content, "text/plain": ""})


def error(name: str, value: str) -> NotebookNode:
    """Return the output of an error."""
    return new_output("error", ename=name, evalue=value, traceback=[])


def read(*outputs_of_cells: list[NotebookNode], points: tuple[float, ...] = (0, 0)) -> ExerciseResult:
    """Read a notebook whose test cells gave these outputs."""
    cells = [
        new_code_cell("check(double)", outputs=outputs, metadata={"nbgrader": {"grade_id": mark.grade_id}})
        for mark, outputs in zip(MARKS, outputs_of_cells, strict=False)
    ]
    scores = {mark.grade_id: Score(value, False) for mark, value in zip(MARKS, points, strict=True)}
    return exercise_results(new_notebook(cells=cells), MARKS, scores, TIMEOUT)["double"]


def test_a_pass_has_points_a_seed_and_nothing_to_say() -> None:
    result = read([verdict(True)], [verdict(True, seed=8)], points=(1, 2))
    assert (result.points, result.maximum, result.status) == (3, 3, "graded")
    assert (result.misconception, result.message, result.seed) == (None, None, 8)


def test_the_first_failed_verdict_explains_the_exercise() -> None:
    failed = verdict(False, misconception="squared", message="Not squared.", seed=9)
    result = read([verdict(True)], [failed, error("CheckFailed", "x")], points=(1, 0))
    assert (result.points, result.misconception, result.message, result.seed) == (1, "squared", "Not squared.", 9)


def test_an_undefined_answer_is_explained_without_a_verdict() -> None:
    message = read([error("NameError", "name 'double' is not defined")], []).message
    assert message == "`double` is not defined in this notebook: its cell was deleted or raised an error."


def test_a_timeout_names_the_limit_and_not_the_interrupt() -> None:
    message = read([error("KeyboardInterrupt", ""), error("CellTimeoutError", "")], []).message
    assert message is not None
    assert "60 seconds" in message


def test_words_on_stderr_are_named_as_the_reason() -> None:
    message = read([new_output("stream", name="stderr", text="careful\nmore")], []).message
    assert message is not None
    assert message.endswith("careful")


@pytest.mark.parametrize(("cells", "status"), [(0, "failed"), (1, "partly"), (2, "graded")])
def test_missing_cells_show_in_the_status(cells: int, status: str) -> None:
    assert read(*[[] for _ in range(cells)]).status == status


def test_a_person_is_awaited_where_the_gradebook_says_so() -> None:
    mark = GradedCell("why-written", "why", 2, True)
    cell = nbformat.v4.new_markdown_cell("x", metadata={"nbgrader": {"grade_id": "why-written"}})
    results = exercise_results(new_notebook(cells=[cell]), [mark], {"why-written": Score(0, True)}, TIMEOUT)
    assert results["why"].status == "needs_manual"


def test_a_malformed_verdict_is_no_verdict() -> None:
    broken = new_output("display_data", {VERDICT_TYPE: "not an object", "text/plain": ""})
    assert read([broken], []).seed is None


def test_times_of_the_test_cells_are_added() -> None:
    times = {"iopub.execute_input": "2026-01-01T10:00:00.000Z", "shell.execute_reply": "2026-01-01T10:00:00.250Z"}
    cells = [
        new_code_cell("", metadata={"nbgrader": {"grade_id": mark.grade_id}, "execution": times}) for mark in MARKS
    ]
    result = exercise_results(new_notebook(cells=cells), MARKS, {}, TIMEOUT)["double"]
    assert result.seconds == pytest.approx(0.5)


def test_a_long_colored_error_is_cut_to_one_plain_line() -> None:
    text = quote("\x1b[31m" + "a" * (LONGEST_QUOTE + 5) + "\nsecond")
    assert text == "a" * LONGEST_QUOTE + " …"
    assert explain_error("ValueError", "") == "The test cell stopped with ValueError: (no text)"
