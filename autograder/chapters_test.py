"""Every chapter, as a learner meets it: released, answered, and executed within its limits."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder import evaluate
from autograder.authoring.execute import execute
from autograder.authoring.roles import exercise_and_role
from autograder.build import chapter_names, check_build, model_answers, solved_notebook, starter_notebook
from autograder.course_folder import chapter_path, find_course
from autograder.exercise import all_exercises

COURSE = find_course(Path(__file__).parent)
CHAPTERS = chapter_names(COURSE)
SEEDS = range(20)
FENCED = re.compile(r"(?ms)^```.*?^```$")  # code that is shown; its comments are no headings

# The limits of a chapter that is answered and runs from top to bottom.
CPU_SECONDS = 60
CPU_SLACK = 3  # machines differ, so only three times the limit fails
PEAK_BYTES = 1.5e9

chapters = pytest.mark.parametrize("chapter", CHAPTERS)


def graded(notebook: NotebookNode, role: str) -> dict[str, NotebookNode]:
    """Give the cells of a role, by exercise."""
    found = {}
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name and exercise_and_role(name)[1] == role:
            found[exercise_and_role(name)[0]] = cell
    return found


def namespace_of(notebook: NotebookNode) -> dict:
    """Run the import statements of a notebook and its aliases of types, and nothing else."""
    space: dict = {"__name__": "__main__"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for node in ast.parse(cell.source).body:
                alias = isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute)
                if alias or isinstance(node, (ast.Import, ast.ImportFrom)):
                    exec(compile(ast.Module([node], []), "<imports>", "exec"), space)
    return space


def test_chapters_are_fresh_and_leak_nothing() -> None:
    assert check_build(COURSE) == []


@chapters
def test_model_answers_pass_under_twenty_seeds(chapter: str) -> None:
    space = namespace_of(solved_notebook(COURSE, chapter))
    answers = graded(solved_notebook(COURSE, chapter), "answer")
    sources = model_answers(COURSE, chapter)
    for exercise, cell in answers.items():
        exec(compile(sources[cell.metadata.nbgrader.grade_id], exercise, "exec"), space)
        for seed in SEEDS:
            verdict = evaluate(space[exercise], exercise, hidden=True, seed=seed)
            assert verdict.passed, verdict.message


@chapters
def test_starters_earn_nothing(chapter: str) -> None:
    notebook = starter_notebook(COURSE, chapter)
    space = namespace_of(notebook)
    for exercise, cell in graded(notebook, "answer").items():
        exec(compile(cell.source, exercise, "exec"), space)
        assert not evaluate(space[exercise], exercise, seed=1).passed
        assert not evaluate(space[exercise], exercise, hidden=True, seed=1).passed


@chapters
def test_every_exercise_of_the_chapter_is_in_its_notebook(chapter: str) -> None:
    expected = {exercise.name for exercise in all_exercises() if exercise.chapter == chapter}
    notebook = solved_notebook(COURSE, chapter)
    assert set(graded(notebook, "answer")) == expected
    assert set(graded(notebook, "test")) == expected
    assert set(graded(notebook, "hidden test")) == expected


@chapters
def test_headings_step_down_one_level_at_a_time(chapter: str) -> None:
    levels = [
        len(line) - len(line.lstrip("#"))
        for cell in starter_notebook(COURSE, chapter).cells
        if cell.cell_type == "markdown"
        for line in FENCED.sub("", cell.source).splitlines()
        if line.startswith("#")
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))


@chapters
def test_starter_runs_to_its_end_and_only_checks_fail(chapter: str, tmp_path: Path) -> None:
    ran = execute(nbformat.read(chapter_path(COURSE, chapter), as_version=4), tmp_path, quick=True)
    visible = {cell.id for cell in graded(ran.notebook, "test").values()}
    hidden = {cell.id for cell in graded(ran.notebook, "hidden test").values()}
    assert {name: text for name, text in ran.errors().items() if name not in visible | hidden} == {}
    assert visible <= set(ran.errors())
    assert ran.noise() == {}


@pytest.mark.slow
@chapters
def test_solved_chapter_keeps_its_limits(chapter: str, tmp_path: Path, record_property) -> None:
    ran = execute(solved_notebook(COURSE, chapter), tmp_path, quick=False)
    cost = f"{ran.cpu_seconds:.0f} CPU-seconds, {ran.peak_bytes / 1e9:.2f} GB at most"
    record_property("measured", f"{chapter}, solved from top to bottom: {cost}")
    assert ran.errors() == {}
    assert ran.noise() == {}
    assert ran.cpu_seconds < CPU_SLACK * CPU_SECONDS
    assert ran.peak_bytes < PEAK_BYTES
