import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

from autograder.grading.noting import KEY, notes_of, with_notes
from autograder.grading.verdicts import VERDICT_TYPE
from autograder.reports.feedback import UNANSWERED, page, summary
from autograder.reports.notebook_html import LONGEST_OUTPUT, cell_html

ABOUT = {"student": "zoë", "assignment": "01_tiny", "score": 3.0, "max_score": 8.0, "late_penalty": 0.0}


def graded(name: str, points: float, score: float, message: str | None = None, **marks) -> NotebookNode:
    """Return a test cell as nbgrader hands it to the exporter."""
    cell = new_code_cell(f"check({name.split('-')[0]})")
    marks = {"grade_id": name, "grade": True, "solution": False, "points": points, "score": score, **marks}
    cell.metadata["nbgrader"] = NotebookNode(marks)
    if message is not None:
        verdict = {"passed": False, "exercise": name, "message": message, "misconception": "squared", "seed": 7}
        cell.outputs = [new_output("display_data", {VERDICT_TYPE: verdict, "text/plain": message})]
    return cell


@pytest.fixture
def notebook() -> NotebookNode:
    written = new_markdown_cell("It <script>alert(1)</script> depends.")
    written.metadata["nbgrader"] = NotebookNode(
        grade_id="why-written", grade=True, solution=True, points=2.0, score=0.0, needs_person=True, comment="Soon <b>."
    )
    return new_notebook(
        cells=[
            new_markdown_cell("# Tiny\n\n## Double it"),
            graded("double-test", 3.0, 3.0),
            new_markdown_cell("## Triple it"),
            graded("triple-test", 3.0, 0.0, "You squared.\nWhich of the two does the text ask for?"),
            new_markdown_cell("## Why"),
            written,
        ]
    )


def test_the_summary_has_points_words_and_comments_by_exercise(notebook: NotebookNode) -> None:
    rows = {row.name: row for row in summary(notebook)}
    assert [(row.points, row.maximum, row.outcome) for row in rows.values()] == [
        (3.0, 3.0, "complete"),
        (0.0, 3.0, "no points yet"),
        (0.0, 2.0, "waits for a person"),
    ]
    assert rows["triple"].lines == ["You squared.", "Which of the two does the text ask for?"]
    assert rows["why"].comments == ["Soon <b>."]


def test_an_answer_that_was_left_out_is_said_where_no_check_says_more(notebook: NotebookNode) -> None:
    for cell in notebook.cells[3], notebook.cells[5]:
        cell.metadata.nbgrader.update(unanswered=True, needs_person=False, comment=None)
    rows = {row.name: row for row in summary(notebook)}
    assert rows["why"].lines == [UNANSWERED]
    assert rows["triple"].lines == ["You squared.", "Which of the two does the text ask for?"]
    assert 'class="comment"' not in page(notebook, ABOUT)


def test_every_link_of_the_summary_leads_somewhere(notebook: NotebookNode) -> None:
    shown = page(notebook, ABOUT)
    for row in summary(notebook):
        assert f'id="{row.link}"' in shown


def test_without_headings_the_links_lead_to_the_graded_cells(notebook: NotebookNode) -> None:
    notebook.cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    test_every_link_of_the_summary_leads_somewhere(notebook)


def test_a_comment_in_shown_code_is_no_heading(notebook: NotebookNode) -> None:
    notebook.cells[2].source += "\n\n```python\n# a comment\n```"
    test_every_link_of_the_summary_leads_somewhere(notebook)


def test_the_page_says_who_how_much_and_why_first(notebook: NotebookNode) -> None:
    shown = page(notebook, ABOUT)
    places = [
        shown.index(words) for words in ("zoë", "3 of 8 points", "You squared.", "Your notebook", "Double it</h4>")
    ]
    assert places == sorted(places)


def test_a_late_penalty_is_said(notebook: NotebookNode) -> None:
    assert "after 1.5 off for handing in late" in page(notebook, ABOUT | {"late_penalty": 1.5})


def test_the_headline_says_how_much_waits_for_a_person(notebook: NotebookNode) -> None:
    assert "3 of 8 points</strong>; 2 more wait for a person to read.</p>" in page(notebook, ABOUT)
    notebook.cells[5].metadata.nbgrader.needs_person = False
    assert "wait for a person" not in page(notebook, ABOUT)


def test_what_was_mended_or_missing_is_told_and_cannot_act(notebook: NotebookNode) -> None:
    assert "Before it was graded" not in page(notebook, ABOUT)
    told = ["The cell triple-test was <deleted>.", "A module is missing."]
    marked = nbformat.reads(with_notes(nbformat.writes(notebook), told), as_version=nbformat.NO_CONVERT)
    shown = page(marked, ABOUT)
    assert "<li>The cell triple-test was &lt;deleted&gt;.</li>" in shown
    assert "<li>A module is missing.</li>" in shown


def test_notes_that_a_student_planted_are_replaced(notebook: NotebookNode) -> None:
    notebook.metadata[KEY] = ["Full marks."]
    text = with_notes(nbformat.writes(notebook), [])
    assert notes_of(nbformat.reads(text, as_version=nbformat.NO_CONVERT)) == []
    notebook.metadata[KEY] = "no list"
    assert notes_of(notebook) == []


def test_a_students_text_and_a_comment_cannot_act(notebook: NotebookNode) -> None:
    shown = page(notebook, ABOUT | {"student": "<script>alert(2)</script>"})
    assert "<script" not in shown
    assert "Soon &lt;b&gt;." in shown
    assert "default-src 'none'" in shown


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (new_output("stream", text="a < b\x1b[31m!"), "a &lt; b!"),
        (new_output("error", ename="ValueError", evalue="<b>"), "ValueError: &lt;b&gt;"),
        (new_output("display_data", {"text/html": "<p onclick=x>hi</p><script>y</script>"}), "<p>hi</p>"),
        (new_output("display_data", {"image/svg+xml": "<svg onload='x'/>", "text/plain": "a map"}), 'alt="a map"'),
        (new_output("display_data", {"image/png": "AA\nAA", "text/plain": "dots"}), "base64,AAAA"),
        (new_output("display_data", {"text/markdown": "**bold**"}), "<strong>bold</strong>"),
        (new_output("display_data", {"application/javascript": "alert(1)"}), ""),
    ],
    ids=["stream", "error", "html", "svg", "png", "markdown", "javascript"],
)
def test_outputs_are_shown_in_a_harmless_form(output: NotebookNode, expected: str) -> None:
    cell = new_code_cell("x")
    cell.outputs = [output]
    shown = cell_html(cell)
    assert expected in shown
    assert not [trace for trace in ("onclick", "onload='x'", "<script", "alert(1)", "\x1b") if trace in shown]


def test_a_flood_of_output_is_cut() -> None:
    cell = new_code_cell("x")
    cell.outputs = [new_output("stream", text="x" * (LONGEST_OUTPUT * 3))]
    assert len(cell_html(cell)) < LONGEST_OUTPUT * 2


def test_a_raw_cell_is_shown_as_text() -> None:
    assert cell_html(new_raw_cell("<b>")) == '<pre class="raw" tabindex="0">&lt;b&gt;</pre>'


def test_code_keeps_its_characters() -> None:
    assert "&lt;" in cell_html(new_code_cell("a < b"))


def test_what_a_failed_check_said_stands_once_below_it() -> None:
    cell = graded("triple-test", 3.0, 0.0, "triple: not yet")
    cell.outputs.append(new_output("error", ename="CheckFailed", evalue="triple: not yet. You squared."))
    shown = cell_html(cell)
    assert shown.count("triple: not yet") == 1
    assert "CheckFailed" not in shown
    assert "You squared." in shown


def test_marks_of_hidden_tests_are_not_shown() -> None:
    cell = new_code_cell("### BEGIN HIDDEN TESTS\ncheck(f, hidden=True)\n### END HIDDEN TESTS")
    shown = cell_html(cell)
    assert "HIDDEN TESTS" not in shown
    assert "hidden" in shown


def test_backticks_in_what_a_check_says_become_code_and_nothing_else_does(notebook: NotebookNode) -> None:
    cell = notebook.cells[3]
    verdict = dict(cell.outputs[0]["data"][VERDICT_TYPE], message="Keep the axis (`keepdims`), not <b>.")
    cell.outputs = [new_output("display_data", {VERDICT_TYPE: verdict, "text/plain": "triple: not yet"})]
    assert "Keep the axis (<code>keepdims</code>), not &lt;b&gt;." in page(notebook, ABOUT)
