"""The course folder is found from wherever one stands in it."""

from pathlib import Path

import pytest

from autograder.course_folder import CourseNotFound, chapter_names, find_course


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Make a folder that counts as a course, with two chapters and files that are none."""
    (tmp_path / "nbgrader_config.py").write_text("")
    solutions = tmp_path / "solutions"
    solutions.mkdir()
    for name in ("02_b.py", "01_a.py", "notes.py", "01_a.ipynb"):
        (solutions / name).write_text("")
    return tmp_path


def test_course_is_found_from_a_folder_inside_it(course: Path) -> None:
    inside = course / "chapters" / "01_a"
    inside.mkdir(parents=True)
    assert find_course(inside) == course
    assert find_course(course) == course


def test_a_folder_outside_every_course_is_named_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CourseNotFound, match="is not inside a course") as caught:
        find_course(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_a_config_without_solutions_is_not_a_course(tmp_path: Path) -> None:
    (tmp_path / "nbgrader_config.py").write_text("")
    with pytest.raises(CourseNotFound):
        find_course(tmp_path)


def test_chapters_are_the_numbered_sources_in_order(course: Path) -> None:
    assert chapter_names(course) == ["01_a", "02_b"]
