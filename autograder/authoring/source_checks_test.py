"""Each rule for a chapter source is broken once, and found by its own sentence."""

from pathlib import Path

import pytest

from autograder.authoring.chapter_source import ChapterSource, read_chapter
from autograder.authoring.example_chapter import TEXT, RegisteredExample, changed
from autograder.authoring.instructor import instructor_notebook
from autograder.authoring.source_checks import identity_problems, registry_problems, source_problems

REGISTERED = [RegisteredExample("double"), RegisteredExample("repaired")]
TEST = "check(double)\n"


def read(folder: Path, text: str = TEXT) -> ChapterSource:
    """Read a text as the source of a chapter."""
    path = folder / "01_toy.py"
    path.write_text(text, encoding="utf-8")
    return read_chapter(path)


def test_example_breaks_no_rule(tmp_path: Path) -> None:
    source = read(tmp_path)
    assert source_problems(source) == []
    assert registry_problems([source], REGISTERED) == []
    assert identity_problems("01_toy", instructor_notebook(source)) == []


FAULTS = {
    "a value at the end": (TEST, "check(double)\ndouble(2) == 4\n", "ends in the value of 'double(2) == 4'"),
    "a value of another call": (TEST, "check(double)\nprint(1)\n", "ends in the value of 'print(1)'"),
    "no check": (TEST, "assert double(1) == 2\n", "must call check(double)"),
    "check of another exercise": (TEST, "check(repaired)\n", "must call check(double)"),
    "hidden in the visible tier": (TEST, "check(double, hidden=True)\n", "must call check(double)"),
    "visible in the hidden tier": (
        "check(double, hidden=True)",
        "check(double)",
        "must call check(double, hidden=True)",
    ),
    "warnings": (TEST, "import warnings\ncheck(double)\n", "the import of warnings may write to stderr"),
    "a named warning": (TEST, "from logging import warning\ncheck(double)\n", "the import of logging"),
    "stderr": (TEST, "import sys\nprint(1, file=sys.stderr)\ncheck(double)\n", "'sys.stderr' may write to stderr"),
    "a shell": (TEST, "import os\nx = os.system('ls')\ncheck(double)\n", "'os.system' may write to stderr"),
    "a magic": (TEST, "# %timeit 1\ncheck(double)\n", "without a magic or shell line"),
    "an imported answer": (
        "    twice_the_number = number",
        "    from course_lib.attention import softmax\n    twice_the_number = number",
        "imports course_lib.attention.softmax, which holds the answer",
    ),
    "an answer that is no Python": ("    return twice_the_number", "    return twice the", "not valid Python"),
    "a starter that is no Python": ("    # return 0", "    # return 0 or", "with its starter"),
    "no header": (
        '# %% [markdown] exercise="repaired" role="header" minutes=15',
        "# %% [markdown]",
        "repaired has no cell with role 'header'",
    ),
    "no test": ('# %% exercise="repaired" points=1 role="test"', "# %%", "repaired has no cell with role 'test'"),
    "no hidden test": (
        '# %% exercise="repaired" points=1 role="hidden test"',
        "# %%",
        "repaired has no cell with role 'hidden test'",
    ),
    "a test of a written question": (
        'exercise="why_doubling" points=3 role="written"',
        'exercise="repaired" points=3 role="written"',
        "the written question repaired takes no 'answer' cell",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found_by_its_own_sentence(fault: str, tmp_path: Path) -> None:
    old, new, words = FAULTS[fault]
    problems = source_problems(read(tmp_path, changed(old, new)))
    assert any(words in problem for problem in problems), problems


@pytest.mark.parametrize(
    "ending",
    ["check(double)", "check(answer, exercise='double')", "check(answer, 'double')", "check(double)\nassert True"],
)
def test_endings_without_a_value_are_allowed(ending: str, tmp_path: Path) -> None:
    assert source_problems(read(tmp_path, changed(TEST, f"{ending}\n"))) == []


def test_exercise_without_registration_is_named(tmp_path: Path) -> None:
    (problem,) = registry_problems([read(tmp_path)], REGISTERED[:1])
    assert "no exercise repaired is registered" in problem


def test_registered_exercise_without_a_cell_is_named(tmp_path: Path) -> None:
    (problem,) = registry_problems([read(tmp_path)], [*REGISTERED, RegisteredExample("triple")])
    assert problem == "solutions/01_toy.py: the exercise triple has no answer cell there."


def test_exercise_of_another_chapter_is_named(tmp_path: Path) -> None:
    (problem,) = registry_problems([read(tmp_path)], [REGISTERED[0], RegisteredExample("repaired", "02_more")])
    assert "repaired is registered for chapter 02_more" in problem


def test_forbidden_import_is_named(tmp_path: Path) -> None:
    source = read(tmp_path, changed("    return abs(number)", "    from math import fabs\n    return fabs(number)"))
    registered = [REGISTERED[0], RegisteredExample("repaired", forbids=("math.fabs",))]
    (problem,) = registry_problems([source], registered)
    assert "imports math.fabs, which this exercise forbids" in problem


def test_shared_ids_are_named(tmp_path: Path) -> None:
    notebook = instructor_notebook(read(tmp_path))
    notebook.cells.append(notebook.cells[4])
    assert identity_problems("01_toy", notebook) == [
        "01_toy: the grade_id 'double' belongs to more than one cell.",
        "01_toy: the cell id 'double' belongs to more than one cell.",
    ]
