"""The ledger keeps each result at once, and a killed run's journal is taken over."""

import json
from pathlib import Path

from autograder.grading.events import JsonLog, last_event
from autograder.grading.ledger import SECONDS_BETWEEN_FILES, Ledger
from autograder.grading.results import StudentResult, read_results
from autograder.reports.class_report import json_lines

CHAPTER = "01_tiny"


def still() -> float:
    """Be a clock that stands."""
    return 0.0


def test_a_result_that_was_recorded_outlives_a_kill(tmp_path: Path) -> None:
    Ledger(tmp_path, CHAPTER, still).record("ada", "key", StudentResult("graded"))
    assert read_results(tmp_path, CHAPTER).students == {}
    again = Ledger(tmp_path, CHAPTER, still)
    assert (list(again.result.students), again.keys) == (["ada"], {"ada": "key"})
    again.write()
    assert list(read_results(tmp_path, CHAPTER).students) == ["ada"]
    assert not again.journal_path.exists()
    assert Ledger(tmp_path, CHAPTER).keys == {"ada": "key"}


def test_a_line_that_was_cut_short_is_not_there(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, CHAPTER, still)
    ledger.record("ada", "key", StudentResult("graded"))
    with ledger.journal_path.open("a") as file:
        file.write('{"student": "bea", "key": "k", "resu')
    assert list(Ledger(tmp_path, CHAPTER).result.students) == ["ada"]


def test_a_line_that_was_cut_inside_a_letter_is_not_there(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, CHAPTER, still)
    ledger.record("ada", "key", StudentResult("graded", ["A line\u2028separator is no end of line."]))
    with ledger.journal_path.open("ab") as file:
        file.write('{"student": "bé'.encode()[:-1])
    assert list(Ledger(tmp_path, CHAPTER).result.students) == ["ada"]
    log = JsonLog(tmp_path / "log.jsonl")
    log.write("start", words="a line\u2028separator")
    log.write("sandbox", kind="none")
    with log.path.open("ab") as file:
        file.write('{"event": "é'.encode()[:-1])
    assert last_event(log.path, "sandbox")["kind"] == "none"
    assert [line["event"] for line in json_lines(log.path)] == ["start", "sandbox"]


def test_students_whose_submission_is_gone_are_forgotten(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, CHAPTER, still)
    for student in ("bea", "ada", "cem"):
        ledger.record(student, "key", StudentResult("graded"))
    ledger.keep_only(["ada", "bea"])
    assert (list(ledger.result.students), list(ledger.keys)) == (["ada", "bea"], ["ada", "bea"])


def test_the_results_file_follows_during_a_long_run(tmp_path: Path) -> None:
    now = [0.0]
    ledger = Ledger(tmp_path, CHAPTER, lambda: now[0])
    now[0] = SECONDS_BETWEEN_FILES + 1
    ledger.record("ada", "key", StudentResult("graded"))
    assert list(read_results(tmp_path, CHAPTER).students) == ["ada"]


def test_damaged_keys_only_mean_that_all_is_graded_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, CHAPTER, still)
    ledger.write()
    for content in ("", "[]", json.dumps({"keys": {}})[:-1]):
        ledger.keys_path.write_text(content)
        assert Ledger(tmp_path, CHAPTER).keys == {}
