"""Ctrl-C while `course grade` runs, as a person presses it."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from autograder.build import answered_notebook
from autograder.commands.common import EXIT_INTERRUPTED
from autograder.grading.results import read_results
from autograder.testing.checked_course import CHAPTER, FIRST, RIGHT, make_checked_course

SLOW = {FIRST: f"import time\ntime.sleep(6)\n{RIGHT[FIRST]}"}
PATIENCE = 120.0  # seconds; a busy machine starts slowly


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Return a course with a quick submission and two slow ones."""
    course = make_checked_course(tmp_path / "course")
    for student, answers in (("ada", RIGHT), ("bea", RIGHT | SLOW), ("cem", RIGHT | SLOW)):
        path = course / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(answered_notebook(course, CHAPTER, answers), path)
    return course


def start(course: Path) -> subprocess.Popen[str]:
    """Start `course grade`, one notebook at a time, with an ear for Ctrl-C."""
    command = [sys.executable, "-m", "autograder.cli", "grade", CHAPTER, "--workers", "1", "--course", str(course)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what starts the tests may ignore it
    )


def graded(course: Path) -> list[str]:
    """Return whom the run's log calls graded."""
    path = course / "results" / f"{CHAPTER}.log.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [event["student"] for event in map(json.loads, lines) if event["event"] == "graded"]


def wait_until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kernel: Windows has no SIGINT for another process")
def test_ctrl_c_keeps_what_was_graded_and_the_next_run_goes_on_from_there(course: Path) -> None:
    run = start(course)
    wait_until(lambda: graded(course) or run.poll() is not None)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=PATIENCE)
    assert run.returncode == EXIT_INTERRUPTED, said
    assert f"Stopped. What was graded is kept; `course grade {CHAPTER}` goes on from there." in said
    assert "Traceback" not in said
    assert graded(course) == ["ada"]
    assert set(read_results(course, CHAPTER).students) == {"ada"}
    again = start(course)
    _, said = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, said
    assert sorted(graded(course)) == ["ada", "bea", "cem"]
    assert {one.points for one in read_results(course, CHAPTER).students.values()} == {6.0}
