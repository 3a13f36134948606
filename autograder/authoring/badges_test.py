from pathlib import Path

import nbformat
import pytest

from autograder.authoring.badges import BEGIN, END, Repository, readme_with_badges, repository, with_badges
from autograder.authoring.roles import BuildError
from autograder.build import build_all
from autograder.course_folder import chapter_path, find_course
from autograder.testing.tiny_course import CHAPTER, make_tiny_course

PUBLISHED = Repository("someone", "course")
README = f"# Title\n\n{BEGIN}\n{END}\n\nText.\n"


def write_address(course: Path, address: str) -> None:
    """Put an address where it belongs."""
    (course / "pyproject.toml").write_text(f'[project]\nname = "x"\n[project.urls]\nRepository = "{address}"\n')


@pytest.mark.parametrize("ending", ["", "/", ".git"])
def test_the_address_stands_in_one_place(ending: str, tmp_path: Path) -> None:
    write_address(tmp_path, f"https://github.com/someone/course{ending}")
    assert repository(tmp_path) == PUBLISHED


def test_without_an_address_there_is_no_badge(tmp_path: Path) -> None:
    assert repository(tmp_path) is None
    write_address(tmp_path, "")
    assert repository(tmp_path) is None
    assert with_badges("{}", CHAPTER, None) == "{}"
    assert readme_with_badges(README, None, CHAPTER) == README


def test_an_address_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    write_address(tmp_path, "https://example.org/course")
    with pytest.raises(BuildError, match="OWNER/NAME"):
        repository(tmp_path)


def test_the_links_open_the_notebook_itself() -> None:
    links = PUBLISHED.badges(f"chapters/{CHAPTER}/{CHAPTER}.ipynb")
    assert f"mybinder.org/v2/gh/someone/course/main?urlpath=lab%2Ftree%2Fchapters%2F{CHAPTER}%2F" in links
    assert f"colab.research.google.com/github/someone/course/blob/main/chapters/{CHAPTER}/" in links


def test_a_published_chapter_has_links_and_an_install_cell_that_does_nothing_here(tmp_path: Path) -> None:
    course = make_tiny_course(tmp_path / "course")
    write_address(course, "https://github.com/someone/course")
    build_all(course)
    notebook = nbformat.read(chapter_path(course, CHAPTER), as_version=4)
    assert "Open on Binder" in notebook.cells[1].source
    assert "git+https://github.com/someone/course" in notebook.cells[2].source
    exec(compile(notebook.cells[2].source, "install", "exec"), {})


def test_readme_gets_the_links_between_its_marks_each_time_the_same() -> None:
    once = readme_with_badges(README, PUBLISHED, "00_start_here")
    assert "Open on Colab" in once
    assert readme_with_badges(once, PUBLISHED, "00_start_here") == once
    assert readme_with_badges(once, None, "00_start_here") == README
    assert readme_with_badges("No marks.", PUBLISHED, "00_start_here") == "No marks."


def test_this_courses_readme_is_as_its_address_says() -> None:
    course = find_course(Path(__file__).parent)
    text = (course / "README.md").read_text(encoding="utf-8")
    assert BEGIN in text
    assert readme_with_badges(text, repository(course), "00_start_here") == text
