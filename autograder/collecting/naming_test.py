"""Names that students choose, and dates and lists that are none, change nobody's work."""

import pytest

from autograder.collecting.archives import Packed
from autograder.collecting.naming import HandIn, gradescope_late, hand_ins

NOTEBOOK = "01_tiny.ipynb"
LIST = "submission_metadata.yml"
ONE = "submission_1:\n  :submitters:\n  - :sid: ada1\n  :lateness: 00:00:00\n"


def read(system: str, files: dict[str, str]) -> tuple[list[HandIn], list[str]]:
    """Read an archive of these files."""
    return hand_ins(system, [Packed(name, text.encode) for name, text in files.items()])


def test_a_files_own_name_cannot_pass_for_another_students_on_blackboard() -> None:
    own = f"x_ada1_attempt_2026-12-31-00-00-00_{NOTEBOOK}"
    found, _ = read("blackboard", {f"Week 1_ben1_attempt_2026-01-31-22-10-05_{own}": "x"})
    assert [(one.words, one.file) for one in found] == [(("ben1",), own)]


def test_a_files_own_name_cannot_pass_for_another_students_on_canvas_and_moodle() -> None:
    own = f"lovelaceada_101_1_{NOTEBOOK}"
    found, _ = read("canvas", {f"mullerben_102_7_{own}": "x"})
    assert [(one.words, one.number, one.file) for one in found] == [(("mullerben",), "102", own)]
    own = f"Ada Lovelace_9_assignsubmission_file_{NOTEBOOK}"
    for name in (f"Ben Muller_8_assignsubmission_file_{own}", f"Ben Muller_8_assignsubmission_file_/{own}"):
        found, _ = read("moodle", {name: "x"})
        assert [(one.words, one.file) for one in found] == [(("Ben Muller",), own)]


def test_a_list_that_a_student_hands_in_is_not_gradescopes() -> None:
    theirs = ONE.replace("ada1", "ben1")
    found, _ = read(
        "gradescope", {f"e/submission_1/{LIST}": theirs, f"e/{LIST}": ONE, f"e/submission_1/{NOTEBOOK}": "x"}
    )
    assert {one.words for one in found} == {("ada1",)}
    assert {one.file for one in found} == {NOTEBOOK, LIST}


def test_the_number_of_moodle_names_nobody() -> None:
    found, _ = read("moodle", {f"Ben Muller_101_assignsubmission_file_/{NOTEBOOK}": "x"})
    assert [(one.words, one.number) for one in found] == [(("Ben Muller",), "")]


def test_a_user_name_with_an_underscore_is_one_of_two_readings() -> None:
    found, _ = read("blackboard", {f"Week 1_j_doe_attempt_2026-01-31-22-10-05_{NOTEBOOK}": "x"})
    assert found[0].words == ("j_doe", "doe")


@pytest.mark.parametrize("date", ["2026-99-99-99-99-99", "2026-02-30-00-00-00", "0000-01-01-00-00-00"])
def test_a_date_that_is_none_leaves_one_file_out(date: str) -> None:
    good = f"Week 1_ada1_attempt_2026-01-31-22-10-05_{NOTEBOOK}"
    found, notes = read("blackboard", {good: "x", f"Week 1_ben1_attempt_{date}_{NOTEBOOK}": "x"})
    assert len(found) == 1
    assert f"{date} is no date" in notes[0]


@pytest.mark.parametrize(
    "entry",
    ["", "\n  :submitters:", "\n  :submitters: ada", "\n  :submitters: [null, ada]", "\n  :submitters: [{}]", " x"],
)
def test_an_entry_of_gradescope_that_names_nobody_leaves_that_one_out(entry: str) -> None:
    files = {LIST: f"{ONE}submission_2:{entry}\n", f"submission_1/{NOTEBOOK}": "x", f"submission_2/{NOTEBOOK}": "x"}
    found, notes = read("gradescope", files)
    assert [one.words for one in found] == [("ada1",)]
    assert notes == [f"submission_2/{NOTEBOOK} was left out: {LIST} names nobody for it."]


@pytest.mark.parametrize(
    ("told", "late"), [("00:00:00", False), (0, False), (None, False), (True, True), ("01:00:00", True)]
)
def test_no_lateness_is_not_late(told: object, late: bool) -> None:
    assert gradescope_late({":lateness": told}) is late


@pytest.mark.parametrize(
    ("system", "earlier", "later"),
    [
        ("canvas", f"a_1_9_{NOTEBOOK}", f"a_1_10_{NOTEBOOK}"),
        ("blackboard", f"W_a_attempt_2026-01-30-08-00-00_{NOTEBOOK}", f"W_a_attempt_2026-01-31-07-00-00_{NOTEBOOK}"),
    ],
)
def test_attempts_have_an_order_over_archives(system: str, earlier: str, later: str) -> None:
    (first,), (second,) = read(system, {earlier: "x"})[0], read(system, {later: "x"})[0]
    assert "" < first.order < second.order
