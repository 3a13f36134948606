"""Building writes the same bytes each time, keeps what a person changed, and agrees with stock nbgrader."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.authoring.example_chapter import NAME, changed, example_course
from autograder.build import (
    BuildError,
    answered_notebook,
    build_all,
    model_answers,
    solved_notebook,
    starter_notebook,
)
from autograder.course_folder import chapter_path, source_notebook_path, source_path


def test_two_builds_are_byte_identical(tmp_path: Path) -> None:
    first, second = (tmp_path / name for name in ("first", "second"))
    for folder in (first, second):
        folder.mkdir()
        build_all(example_course(folder))
    for path in (chapter_path, source_notebook_path):
        assert path(first, NAME).read_bytes() == path(second, NAME).read_bytes()


def test_built_notebook_is_valid_tidy_and_without_answers(tmp_path: Path) -> None:
    course = example_course(tmp_path)
    (result,) = build_all(course)
    text = result.path.read_text(encoding="utf-8")
    assert text.endswith("}\n")
    assert text.startswith('{\n "cells"')
    assert "√d" in text
    assert "lines_to_next_cell" not in text
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    sources = {cell.id: cell.source for cell in notebook.cells}
    assert "NotImplementedError" in sources["double"]
    assert "twice_the_number" not in text
    assert sources["repaired"].endswith("    if number:\n        return number\n\n    return 0")
    assert sources["double-hidden-test"].startswith("# Hidden cases run")
    assert sources["why_doubling-written"] == "*Your answer replaces this line.*"
    assert (result.exercises, result.points, result.minutes, result.problems) == (3, 8, 45, [])


def test_building_touches_no_gradebook_and_needs_nothing_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    course = example_course(tmp_path)
    build_all(course)
    assert sorted(path.name for path in course.iterdir()) == ["build", "chapters", "nbgrader_config.py", "solutions"]


def test_second_build_writes_nothing(tmp_path: Path) -> None:
    course = example_course(tmp_path)
    build_all(course)
    before = chapter_path(course, NAME).stat().st_mtime_ns
    (result,) = build_all(course, NAME)
    assert not result.written
    assert result.kept_copy is None
    assert chapter_path(course, NAME).stat().st_mtime_ns == before
    assert str(result) == "01_toy: already up to date."


def edit_source(course: Path) -> None:
    """Change the chapter's source, so that a build has something new to write."""
    source_path(course, NAME).write_text(changed("and say why", "and tell why"), encoding="utf-8")


def test_changed_source_replaces_an_untouched_notebook_without_a_copy(tmp_path: Path) -> None:
    course = example_course(tmp_path)
    build_all(course)
    edit_source(course)
    (result,) = build_all(course)
    assert result.written
    assert result.kept_copy is None
    assert "tell why" in result.path.read_text(encoding="utf-8")


def save_with_outputs(path: Path) -> None:
    """Do what a person does who opens a notebook, runs it and saves it."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[2].execution_count = 1
    notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="mine")]
    nbformat.write(notebook, path)


def edit_an_answer(path: Path) -> None:
    """Do what a learner does who works in chapters/ itself."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[4].source = "def double(number):\n    return 2 * number"
    nbformat.write(notebook, path)


def spoil(path: Path) -> None:
    """Leave something that is no notebook at all."""
    path.write_bytes(b"\xff not a notebook")


@pytest.mark.parametrize("change", [save_with_outputs, edit_an_answer, spoil])
@pytest.mark.parametrize("new_source", [True, False])
def test_notebook_changed_by_hand_is_kept_and_said(change, new_source: bool, tmp_path: Path) -> None:
    course = example_course(tmp_path)
    build_all(course)
    path = chapter_path(course, NAME)
    change(path)
    theirs = path.read_bytes()
    if new_source:
        edit_source(course)
    (result,) = build_all(course)
    assert result.kept_copy is not None
    assert result.kept_copy.parent == path.parent
    assert result.kept_copy.name.startswith("01_toy.changed-")
    assert result.kept_copy.read_bytes() == theirs
    assert str(result.kept_copy) in str(result)
    assert path.read_bytes() != theirs


def test_two_changes_within_one_second_are_both_kept(tmp_path: Path) -> None:
    course = example_course(tmp_path)
    copies = set()
    for _ in range(2):
        build_all(course)
        save_with_outputs(chapter_path(course, NAME))
        copies.add(build_all(course)[0].kept_copy)
    assert len(copies) == 2


def test_a_notebook_of_unknown_origin_is_kept(tmp_path: Path) -> None:
    course = example_course(tmp_path)
    path = chapter_path(course, NAME)
    path.parent.mkdir(parents=True)
    path.write_text("mine", encoding="utf-8")
    (result,) = build_all(course)
    assert result.kept_copy is not None
    assert result.kept_copy.read_text(encoding="utf-8") == "mine"


def test_a_chapter_that_does_not_exist_is_named_with_those_that_do(tmp_path: Path) -> None:
    course = example_course(tmp_path)
    with pytest.raises(BuildError, match=r"no chapter '01_toys'; the chapters are 01_toy\. Did you mean 01_toy\?"):
        build_all(course, "01_toys")
    for make in (solved_notebook, starter_notebook, model_answers):
        with pytest.raises(BuildError, match="no chapter '99_none'"):
            make(course, "99_none")


def test_a_course_without_chapters_says_so(tmp_path: Path) -> None:
    course = example_course(tmp_path)
    source_path(course, NAME).unlink()
    with pytest.raises(BuildError, match="holds no chapter"):
        build_all(course)


def test_a_secret_stops_the_build_before_anything_is_written(tmp_path: Path) -> None:
    leaky = changed(
        "# Return twice the number.",
        "# Return number + number + 0 * number: twice_the_number =\n# number + number + 0 * number, that is.",
    )
    course = example_course(tmp_path, leaky)
    with pytest.raises(BuildError, match="a line of the solution of double"):
        build_all(course)
    assert not chapter_path(course, NAME).exists()


def test_harmless_faults_are_listed_in_the_result(tmp_path: Path) -> None:
    course = example_course(tmp_path, changed('# %% exercise="repaired" points=1 role="hidden test"', "# %%"))
    (result,) = build_all(course)
    assert result.written
    assert "repaired has no cell with role 'hidden test'" in str(result)


def test_what_nbgrader_refuses_is_told_with_its_reason(tmp_path: Path) -> None:
    course = example_course(tmp_path)
    config = course / "nbgrader_config.py"
    config.write_text(config.read_text(encoding="utf-8") + "\nc.ClearSolutions.code_stub = {'R': 'stop()'}\n")
    with pytest.raises(BuildError, match=r"01_toy: nbgrader refuses .*language 'python' has not been specified"):
        build_all(course)


def test_a_chapter_without_graded_cells_builds(tmp_path: Path) -> None:
    course = example_course(tmp_path, '# %% [markdown] role="opening"\n# # Start here\n\n# %%\nprint("hello")\n')
    (result,) = build_all(course)
    assert (result.points, result.exercises, result.problems) == (0, 0, [])


def test_model_answers_carry_no_mark_and_make_a_full_submission(tmp_path: Path) -> None:
    course = example_course(tmp_path)
    answers = model_answers(course, NAME)
    assert list(answers) == ["double", "repaired", "why_doubling-written"]
    assert answers["repaired"] == "def repaired(number):\n    return abs(number)"
    notebook = answered_notebook(course, NAME)
    sources = {cell.id: cell.source for cell in notebook.cells}
    assert sources["double"] == answers["double"]
    assert sources["double-hidden-test"].startswith("# Hidden cases run")


def test_submission_answers_only_the_cells_that_are_named(tmp_path: Path) -> None:
    course = example_course(tmp_path)
    notebook = answered_notebook(course, NAME, {"double": "double = None"})
    sources = {cell.id: cell.source for cell in notebook.cells}
    assert sources["double"] == "double = None"
    assert sources["repaired"] == {cell.id: cell.source for cell in starter_notebook(course, NAME).cells}["repaired"]
    with pytest.raises(BuildError, match="has no cell 'triple' to answer"):
        answered_notebook(course, NAME, {"triple": ""})


def test_solved_notebook_holds_answers_and_hidden_tests(tmp_path: Path) -> None:
    sources = {cell.id: cell.source for cell in solved_notebook(example_course(tmp_path), NAME).cells}
    assert "return twice_the_number" in sources["double"]
    assert "check(double, hidden=True)\n### END HIDDEN TESTS" in sources["double-hidden-test"]
    assert "distributes over addition" in sources["why_doubling-written"]


@pytest.mark.slow
def test_stock_nbgrader_releases_the_same_bytes(tmp_path: Path) -> None:
    course = example_course(tmp_path)
    build_all(course)
    path = chapter_path(course, NAME)
    ours = path.read_bytes()
    path.unlink()
    path.parent.rmdir()
    scripts = str(Path(sys.executable).parent)
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_assignment", NAME],
        cwd=course,
        env={**os.environ, "PATH": os.pathsep.join([scripts, os.environ["PATH"]])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == ours
    assert (course / "gradebook.db").exists()
