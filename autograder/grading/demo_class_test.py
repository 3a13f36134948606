"""The made-up class: the same each time, and each submission as its name says."""

from pathlib import Path

import nbformat
import pytest

from autograder.build import model_answers
from autograder.commands.demo import MARK, make_course
from autograder.errors import CourseError
from autograder.grading.cells import grade_id
from autograder.grading.demo_class import CLASS_SIZE, class_drafts, make_class, make_uniform_class, read_material
from autograder.testing.tiny_course import CHAPTER, make_tiny_course


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the tiny course."""
    return make_tiny_course(tmp_path_factory.mktemp("demo") / "course")


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def answers_of(folder: Path, student: str) -> dict[str, str]:
    """Return the cells of a submission that nbgrader names."""
    notebook = nbformat.read(folder / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    return {str(grade_id(cell)): cell.source for cell in notebook.cells if grade_id(cell)}


def test_twelve_kinds_of_submission_are_made(course: Path, tmp_path: Path) -> None:
    students = make_class(course, CHAPTER, into=tmp_path)
    assert len(students) == CLASS_SIZE == len({*students})
    assert sorted(path.name for path in (tmp_path / "submitted").iterdir()) == sorted(students)


def test_the_same_class_is_made_each_time(course: Path, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        make_class(course, CHAPTER, into=tmp_path / folder)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_larger_class_repeats_the_kinds_under_new_names(course: Path, tmp_path: Path) -> None:
    students = make_class(course, CHAPTER, into=tmp_path, students=CLASS_SIZE + 2)
    assert students[CLASS_SIZE:] == [f"{students[0]}-2", f"{students[1]}-2"]
    assert answers_of(tmp_path, students[0]) == answers_of(tmp_path, students[CLASS_SIZE])


def test_the_complete_submission_holds_the_model_answers(course: Path, tmp_path: Path) -> None:
    make_class(course, CHAPTER, into=tmp_path, students=1)
    found = answers_of(tmp_path, "01-complete")
    expected = {name: text for name, text in model_answers(course, CHAPTER).items() if not name.endswith("-written")}
    assert {name: found[name] for name in expected} == expected


def test_a_uniform_class_hands_in_one_notebook_under_many_names(course: Path, tmp_path: Path) -> None:
    students = make_uniform_class(course, CHAPTER, 10, into=tmp_path)
    assert students[0] == "student-01"
    assert len({str(answers_of(tmp_path, student)) for student in students}) == 1


def test_the_class_of_the_first_chapter_holds_real_misconceptions_and_unusual_forms() -> None:
    material = read_material(Path(__file__).parents[2], "01_attention")
    drafts = class_drafts(material)
    changed = {
        kind: sum(draft.answers.get(name) != text for name, text in material.answers.items())
        for kind, draft in drafts.items()
    }
    assert changed["05-one-misconception"] == 1
    assert changed["06-two-misconceptions"] == 2
    assert changed["07-three-misconceptions"] == 3
    assert changed["02-unusual-forms"] > len(material.answers) // 2
    assert changed["04-untouched"] == len(material.answers)


def test_a_demo_folder_holds_what_stock_nbgrader_needs(course: Path, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    for _ in range(2):
        make_course(course, out, CHAPTER)
    names = contents(out).keys()
    assert {f"build/source/{CHAPTER}/{CHAPTER}.ipynb", f"chapters/{CHAPTER}/{CHAPTER}.ipynb"} < names
    assert {"nbgrader_config.py", MARK} < names


def test_a_folder_that_no_demo_made_is_left_alone(course: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(CourseError, match="was not made by"):
        make_course(course, tmp_path, CHAPTER)
    assert contents(tmp_path) == {"mine.txt": b"mine"}
