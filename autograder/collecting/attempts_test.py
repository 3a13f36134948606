"""Whose a file is, when it was handed in, and which attempt counts."""

import shutil
from pathlib import Path

import pytest

from autograder.collecting.packing import CHAPTER, NOTEBOOK, collected, everything, take, text
from autograder.collecting.record import recall
from autograder.errors import CourseError


def test_number_and_name_of_different_students_settle_nobody(course: Path) -> None:
    done = take(course, "canvas", {f"mullerben_101_1_{NOTEBOOK}": "ben's", f"doechris_103_2_{NOTEBOOK}": "x"})
    assert done.ambiguous == {"mullerben": ["ada1", "ben1"]}
    assert done.students == ["dup1"]


def test_a_students_only_folder_is_not_taken_for_another_student(course: Path) -> None:
    with pytest.raises(CourseError, match="ben1 can be ada1 or ben1"):
        take(course, "folder", {f"ada1/ben1/{NOTEBOOK}": "ada's"})


def test_moodles_number_is_no_students_number(course: Path) -> None:
    done = take(course, "moodle", {f"Ben Müller_101_assignsubmission_file_/{NOTEBOOK}": "ben's"})
    assert (done.students, text(course, "ben1")) == (["ben1"], "ben's")


@pytest.mark.parametrize(
    ("system", "folder"),
    [
        ("canvas", "lovelaceada_101_1_"),
        ("moodle", "Ada Lovelace_9_assignsubmission_file_/"),
        ("blackboard", "W_ada1_attempt_2026-01-31-22-10-05_"),
        ("folder", "ada1/"),
        ("folder", "ada1/deeper/"),
    ],
)
@pytest.mark.parametrize("name", ["timestamp.txt", "Timestamp.TXT"])
def test_a_time_that_was_handed_in_is_left_out_and_told(system: str, folder: str, name: str, course: Path) -> None:
    done = take(course, system, {f"{folder}{NOTEBOOK}": "a", f"{folder}{name}": "2001-01-01 00:00:00 UTC"}, CHAPTER)
    assert any("ada1 handed in a timestamp.txt; it was left out" in note for note in done.notes)
    stamps = [path for path in (course / "submitted").rglob("*") if path.name.casefold() == "timestamp.txt"]
    assert len(stamps) == (system == "blackboard")
    assert not any("2001" in path.read_text() for path in stamps)


def test_a_folder_called_as_the_time_stops_nobody(course: Path) -> None:
    attempt = "W_ada1_attempt_2026-01-31-22-10-05_"
    handed_in = course.parent / "handed_in" / "ada1" / "timestamp.txt"
    handed_in.mkdir(parents=True)
    (handed_in / "x").write_text("x")
    (handed_in.parent / NOTEBOOK).write_text("a")
    assert collected(course, handed_in.parent.parent).students == ["ada1"]
    assert everything(course / "submitted") == {f"ada1/{CHAPTER}/{NOTEBOOK}"}
    assert take(course, "blackboard", {f"{attempt}{NOTEBOOK}": "b"}).students == ["ada1"]


def test_a_late_mark_without_a_time_says_that_it_costs_nothing_and_is_remembered(course: Path) -> None:
    done = take(course, "canvas", {f"lovelaceada_LATE_101_9_{NOTEBOOK}": "a", f"mullerben_102_8_{NOTEBOOK}": "b"})
    assert (
        "ada1 handed in late, says the LMS; its archive holds no time, so the late policy takes nothing off."
        in done.notes
    )
    assert {student: one.late for student, one in recall(course, CHAPTER).items()} == {"ada1": True, "ben1": False}


@pytest.mark.parametrize(
    ("system", "older", "newer"),
    [
        ("canvas", "lovelaceada_101_9001_01_tiny-1.ipynb", "lovelaceada_101_9002_01_tiny-2.ipynb"),
        (
            "blackboard",
            f"W_ada1_attempt_2026-01-30-22-10-05_{NOTEBOOK}",
            f"W_ada1_attempt_2026-01-31-22-10-05_{NOTEBOOK}",
        ),
    ],
)
def test_an_older_archive_does_not_replace_a_newer_attempt(system: str, older: str, newer: str, course: Path) -> None:
    take(course, system, {newer: "newer"})
    for _ in range(2):
        done = take(course, system, {older: "older"})
        assert (done.students, done.unchanged) == ([], ["ada1"])
        assert text(course, "ada1") == "newer"
        assert everything(course / "submitted_earlier") >= {f"ada1/{CHAPTER}/01/{NOTEBOOK}"}
        assert [path.name for path in (course / "submitted_earlier" / "ada1" / CHAPTER).iterdir()] == ["01"]
    assert text(course, "ada1", "submitted_earlier", "01") == "older"
    assert any("older than the one collected before" in note for note in done.notes)


def test_an_older_attempt_counts_where_the_newer_one_was_taken_away(course: Path) -> None:
    take(course, "canvas", {f"lovelaceada_101_9002_{NOTEBOOK}": "newer"})
    shutil.rmtree(course / "submitted" / "ada1")
    assert take(course, "canvas", {f"lovelaceada_101_9001_{NOTEBOOK}": "older"}).students == ["ada1"]
    take(course, "canvas", {f"lovelaceada_101_9002_{NOTEBOOK}": "newer"})
    assert text(course, "ada1") == "newer"


def test_a_file_that_comes_from_a_folder_keeps_its_name_in_the_lms(course: Path) -> None:
    take(course, "canvas", {f"lovelaceada_101_9001_{NOTEBOOK}": "first"})
    take(course, "folder", {f"ada1/{NOTEBOOK}": "mended by hand"})
    assert recall(course, CHAPTER)["ada1"].origin == f"lovelaceada_101_9001_{CHAPTER}"
    assert text(course, "ada1") == "mended by hand"
