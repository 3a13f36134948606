"""A learner's commands on a tiny chapter: progress, reset, update and answer."""

import copy
import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from autograder.cli import main
from autograder.course_folder import SOLUTIONS, chapter_path, starter_path
from autograder.errors import CourseError
from autograder.learning.answers import model_answer
from autograder.learning.conftest import answer, correct, notebook_of, save
from autograder.learning.notebooks import by_grade_id, learner_notebook
from autograder.learning.progress import ChapterProgress, progress
from autograder.learning.resetting import reset
from autograder.learning.updating import update
from autograder.reports.progress_table import course_html, course_rows
from autograder.testing.tiny_course import CHAPTER, RIGHT

PASSED = "double: passed, 2 cases (seed 7)"


def states(course: Path) -> dict[str, str]:
    """Return the state of each exercise."""
    return {step.exercise: step.state for step in progress(course)[0].steps}


def test_a_fresh_chapter_is_untouched(course: Path) -> None:
    assert states(course) == {"double": "untouched", "triple": "untouched", "why": "untouched"}


def test_progress_tells_passed_tried_and_answered_apart(course: Path) -> None:
    answer(course, "double", RIGHT["double"], PASSED)
    answer(course, "triple", "def triple(x):\n    return x", "triple: not yet")
    answer(course, "why-written", "Two divides it.")
    assert states(course) == {"double": "passed", "triple": "tried", "why": "answered"}
    assert progress(course)[0].points == 3.0
    assert progress(course)[0].maximum == 8.0


def test_an_error_below_a_passed_line_is_no_pass(course: Path) -> None:
    answer(course, "double", "def double(x):\n    return x", PASSED)
    notebook = notebook_of(course)
    by_grade_id(notebook)["double-test"].outputs.append(new_output("error", ename="CheckFailed", evalue="no"))
    save(course, notebook)
    assert states(course)["double"] == "tried"


def test_a_damaged_notebook_is_named_and_the_others_are_shown(course: Path) -> None:
    chapter_path(course, CHAPTER).write_text("{", encoding="utf-8")
    assert "cannot be read" in progress(course)[0].problem
    assert course_rows([*progress(course), ChapterProgress("02_b", "b")])[0][0] == CHAPTER


def test_the_table_for_a_notebook_says_the_same_numbers(course: Path) -> None:
    answer(course, "double", RIGHT["double"], PASSED)
    shown = course_html(progress(course))
    assert ">3 of 8</td>" in shown
    assert "double</th>" in shown
    assert ">passed</td>" in shown
    assert shown.count("<tr>") == 3 + 4  # the course, and the one chapter's exercises


def test_reset_restores_the_starter_and_keeps_a_copy(course: Path) -> None:
    fresh = by_grade_id(notebook_of(course))["double"].source
    answer(course, "double", "def double(x):\n    return 'mine'", PASSED)
    answer(course, "triple", RIGHT["triple"])
    path, kept = reset(course, "double")
    cells = by_grade_id(learner_notebook(path))
    assert cells["double"].source == fresh
    assert cells["double-test"].outputs == []
    assert cells["triple"].source == RIGHT["triple"]
    assert kept is not None
    assert "'mine'" in kept.read_text(encoding="utf-8")


def test_reset_of_an_untouched_exercise_changes_nothing(course: Path) -> None:
    before = chapter_path(course, CHAPTER).read_bytes()
    assert reset(course, "double")[1] is None
    assert chapter_path(course, CHAPTER).read_bytes() == before


def test_an_unknown_exercise_is_refused_with_the_nearest_name(course: Path) -> None:
    with pytest.raises(CourseError, match="did you mean double"):
        reset(course, "doubel")


def test_an_update_without_corrections_changes_nothing(course: Path) -> None:
    assert update(course, CHAPTER) == (None, [f"{CHAPTER} is up to date."])


def test_an_update_takes_corrections_and_keeps_answers_changes_and_own_cells(course: Path) -> None:
    answer(course, "double", RIGHT["double"], PASSED)
    answer(course, "why-written", "Two divides it.")
    notebook = notebook_of(course)
    notebook.cells.insert(2, new_code_cell("my_note = 1", id="mine"))
    save(course, notebook)
    correct(course, "Give back twice the input.", "Give back exactly twice the input.")
    correct(course, "check(triple, hidden=True)", "check(triple, hidden=True)  # all of it")
    kept, _ = update(course, CHAPTER)
    after = notebook_of(course)
    cells = by_grade_id(after)
    assert cells["double"].source == RIGHT["double"]
    assert PASSED in str(cells["double-test"].outputs)
    assert cells["why-written"].source == "Two divides it."
    assert any("exactly twice" in cell.source for cell in after.cells)
    assert [cell.source for cell in after.cells].index("my_note = 1") == 2
    assert kept is not None
    assert len(json.loads(kept.read_text(encoding="utf-8"))["cells"]) == len(notebook.cells)


def test_a_cell_that_both_changed_is_there_twice(course: Path) -> None:
    notebook = notebook_of(course)
    header = next(cell for cell in notebook.cells if "Give back twice the input." in cell.source)
    header.source += "\n\nMy remark."
    save(course, notebook)
    correct(course, "Give back twice the input.", "Give back exactly twice the input.")
    _, said = update(course, CHAPTER)
    texts = [cell.source for cell in notebook_of(course).cells]
    place = next(at for at, text in enumerate(texts) if "exactly twice" in text)
    assert "My remark." in texts[place + 1]
    assert any("you had changed it" in sentence for sentence in said)


def test_a_cell_that_only_the_learner_changed_stays_theirs(course: Path) -> None:
    notebook = notebook_of(course)
    header = next(cell for cell in notebook.cells if "Give back twice the input." in cell.source)
    header.source += "\n\nMy remark."
    save(course, notebook)
    correct(course, "Give back three times the input.", "Give back exactly three times the input.")
    update(course, CHAPTER)
    texts = "".join(cell.source for cell in notebook_of(course).cells)
    assert "My remark." in texts
    assert "exactly three times" in texts
    assert "earlier version" not in texts


def test_an_answer_whose_exercise_is_gone_stands_at_the_end(course: Path) -> None:
    answer(course, "triple", RIGHT["triple"])
    path = course / SOLUTIONS / f"{CHAPTER}.py"
    text = path.read_text(encoding="utf-8")
    start, end = text.index('# %% [markdown] exercise="triple"'), text.index('# %% [markdown] exercise="why"')
    path.write_text(text[:start] + text[end:], encoding="utf-8")
    update(course, CHAPTER)
    assert RIGHT["triple"] in notebook_of(course).cells[-1].source
    assert notebook_of(course).cells[-1].cell_type == "markdown"


def test_two_updates_are_one(course: Path) -> None:
    answer(course, "double", RIGHT["double"], PASSED)
    correct(course, "Give back twice the input.", "Give back exactly twice the input.")
    update(course, CHAPTER)
    once = notebook_of(course)
    assert update(course, CHAPTER)[0] is None
    assert notebook_of(course) == once


def test_a_bundle_without_sources_resets_from_its_starters(course: Path) -> None:
    fresh = notebook_of(course)
    starter = starter_path(course, CHAPTER)
    starter.parent.mkdir()
    nbformat.write(copy.deepcopy(fresh), starter)
    (course / SOLUTIONS / f"{CHAPTER}.py").unlink()
    answer(course, "double", RIGHT["double"])
    reset(course, "double")
    assert by_grade_id(notebook_of(course))["double"].source == by_grade_id(fresh)["double"].source
    with pytest.raises(CourseError, match="has no answers"):
        model_answer(course, "double")


def test_the_model_answer_is_the_code_alone(course: Path) -> None:
    assert model_answer(course, "double") == 'def double(x):\n    """Double the input."""\n    return 2 * x'


def test_a_notebook_from_before_fingerprints_loses_nothing(course: Path) -> None:
    answer(course, "double", RIGHT["double"])
    notebook = notebook_of(course)
    del notebook.metadata["handed_out"]
    notebook.cells.append(new_markdown_cell("My own end.", id="own-end"))
    save(course, notebook)
    correct(course, "Give back twice the input.", "Give back exactly twice the input.")
    update(course, CHAPTER)
    after = notebook_of(course)
    assert by_grade_id(after)["double"].source == RIGHT["double"]
    assert after.cells[-1].source == "My own end."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("progress",), "untouched"),
        (("progress", "1"), "double"),
        (("reset", "double"), "nothing was changed"),
        (("update", "1"), "up to date"),
        (("answer", "double", "--yes"), "return 2 * x"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_the_commands_say_it(arguments: tuple[str, ...], words: str, course: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(course)
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert not end.value.code
    assert words in capsys.readouterr().out


def test_the_answer_is_not_shown_to_whoever_declines(course: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(course)
    monkeypatch.setattr("typer.confirm", lambda words: False)
    with pytest.raises(SystemExit):
        main(("answer", "double"))
    assert "return 2 * x" not in capsys.readouterr().out
