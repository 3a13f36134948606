"""How a chapter may be named, and how a program is called from where the user is."""

import os
import sys
from pathlib import Path

import pytest

from autograder.commands.common import handed_in_chapter, resolve_chapter
from autograder.commands.demo import typed
from autograder.errors import CourseError
from autograder.testing.tiny_course import CHAPTER, make_tiny_course

START = "00_start_here"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Return a course with one chapter."""
    return make_tiny_course(tmp_path / "course")


@pytest.mark.parametrize("given", ["0", "00", "start_here", START])
def test_the_start_page_has_a_number_too(given: str) -> None:
    assert resolve_chapter(given, [START, CHAPTER]) == START


@pytest.mark.parametrize("given", ["1", "01", "tiny", CHAPTER])
def test_a_chapter_of_the_course_is_named_as_everywhere(given: str, course: Path) -> None:
    assert handed_in_chapter(course, given) == CHAPTER


@pytest.mark.parametrize("place", ["submitted/ada/homework", "build/source/homework/homework.ipynb", "source/homework"])
def test_a_chapter_without_a_source_here_has_its_full_name(place: str, course: Path) -> None:
    (course / place).mkdir(parents=True)
    assert handed_in_chapter(course, "homework") == "homework"


@pytest.mark.parametrize("given", ["99_x", "", "../course", "*"])
def test_what_is_no_chapter_is_refused_and_not_offered_for_grading(given: str, course: Path) -> None:
    (course / "submitted" / "ada" / CHAPTER).mkdir(parents=True)
    with pytest.raises(CourseError, match="There is no chapter") as refusal:
        handed_in_chapter(course, given)
    assert "course grade" not in str(refusal.value)


def test_a_program_is_named_by_a_path_that_works_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = tmp_path / "a folder" / "bin"
    scripts.mkdir(parents=True)
    program = scripts / "course"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(scripts / "python"))
    monkeypatch.setenv("PATH", "")
    assert typed("course", tmp_path / "demo") == "'../a folder/bin/course'"
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), str(scripts)]))
    assert typed("course", tmp_path / "demo") == "course"
    assert typed("no-such-program", tmp_path) == "no-such-program"
