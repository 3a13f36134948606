"""`course build --check` finds each way in which chapters/ can be wrong."""

from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from autograder.authoring.example_chapter import NAME, RegisteredExample, changed, example_course
from autograder.build import build_all, check_build
from autograder.course_folder import chapter_path, source_path

BELIEF = "You take the number itself for its double."
REGISTERED = [
    RegisteredExample("double", misconceptions={"identity": SimpleNamespace(words=BELIEF)}),
    RegisteredExample("repaired"),
]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Make a course that is built."""
    course = example_course(tmp_path)
    build_all(course)
    return course


def problems(course: Path, only: str | None = None) -> list[str]:
    """Check a course against the example's own registry."""
    return check_build(course, only, REGISTERED)  # pyright: ignore[reportArgumentType]


def test_a_fresh_build_has_no_problems(course: Path) -> None:
    assert problems(course) == []
    assert problems(course, NAME) == []


def test_a_missing_chapter_is_named(course: Path) -> None:
    chapter_path(course, NAME).unlink()
    assert problems(course) == ["chapters/01_toy/01_toy.ipynb is missing; run `course build`."]


def test_a_stale_chapter_is_named(course: Path) -> None:
    source_path(course, NAME).write_text(changed("and say why", "and tell why"), encoding="utf-8")
    assert problems(course) == ["chapters/01_toy/01_toy.ipynb is older than its source; run `course build`."]


def test_a_chapter_changed_by_hand_is_named(course: Path) -> None:
    path = chapter_path(course, NAME)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source += " More."
    nbformat.write(notebook, path)
    (problem,) = problems(course)
    assert "was changed by hand" in problem


def test_a_lost_list_of_generated_notebooks_is_named(course: Path) -> None:
    (course / "chapters" / ".generated.json").unlink()
    (problem,) = problems(course)
    assert "not in the list of generated notebooks" in problem
    build_all(course)
    assert problems(course) == []


def test_a_spoilt_notebook_is_named(course: Path) -> None:
    chapter_path(course, NAME).write_text("{}", encoding="utf-8")
    assert any("cannot be read as a notebook" in problem for problem in problems(course))


def test_a_misconception_in_the_source_prose_is_named(course: Path) -> None:
    source_path(course, NAME).write_text(changed("# Return twice the number.", f"# {BELIEF}"), encoding="utf-8")
    build_all(course)
    (problem,) = problems(course)
    assert "the words of a misconception" in problem


def test_a_solution_in_a_file_beside_the_notebook_is_named(course: Path) -> None:
    beside = chapter_path(course, NAME).with_name("notes.txt")
    beside.write_text("twice_the_number = number + number + 0 * number\n", encoding="utf-8")
    (problem,) = problems(course)
    assert problem.startswith("chapters/01_toy/notes.txt: a line of the solution of double")


def test_a_solution_typed_into_the_students_notebook_is_named(course: Path) -> None:
    path = chapter_path(course, NAME)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[4].source = "def double(number):\n    twice_the_number = number + number + 0 * number"
    nbformat.write(notebook, path)
    assert any("a line of the solution of double" in problem for problem in problems(course))


def test_a_kept_copy_is_nobodys_leak(course: Path) -> None:
    path = chapter_path(course, NAME)
    copy = path.with_name("01_toy.changed-20250101-000000.ipynb")
    copy.write_text("twice_the_number = number + number + 0 * number", encoding="utf-8")
    assert problems(course) == []


def test_a_folder_without_a_source_is_named(course: Path) -> None:
    (course / "chapters" / "07_gone").mkdir()
    assert problems(course) == ["chapters/07_gone has no source in solutions/; remove the folder."]


def test_a_broken_source_is_one_problem_and_not_many(course: Path) -> None:
    source_path(course, NAME).write_text(changed("# %% long=true", "# %% slow=true"), encoding="utf-8")
    (problem,) = problems(course)
    assert "'slow' is not allowed" in problem


def test_rules_for_sources_and_registry_are_checked(course: Path) -> None:
    text = changed("check(double)\n", "check(double)\n1\n").replace('exercise="repaired"', 'exercise="mended"')
    source_path(course, NAME).write_text(text.replace("check(repaired", "check(mended"), encoding="utf-8")
    build_all(course)
    said = "\n".join(problems(course))
    assert "ends in the value of '1'" in said
    assert "no exercise mended is registered" in said
    assert "the exercise repaired has no answer cell" in said
