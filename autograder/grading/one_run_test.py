"""Two runs on one course are refused, and a run that was killed holds nothing."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.errors import CourseError
from autograder.grading.engine import grade_chapter
from autograder.grading.one_run import one_run_at_a_time
from autograder.testing.tiny_course import CHAPTER, make_tiny_course

HOLD = """
import sys, time
from pathlib import Path
from autograder.grading.one_run import one_run_at_a_time
with one_run_at_a_time(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_stops_and_changes_nothing(tmp_path: Path) -> None:
    course = make_tiny_course(tmp_path / "course")
    (course / "submitted" / "ada" / CHAPTER).mkdir(parents=True)
    with one_run_at_a_time(course), pytest.raises(CourseError, match="Another run is grading in"):
        grade_chapter(course, CHAPTER)
    assert [path.name for path in (course / "results").iterdir()] == [".grading.lock"]
    with one_run_at_a_time(course):
        pass


def test_a_killed_run_does_not_keep_the_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(CourseError, match="Another run"), one_run_at_a_time(tmp_path):
            pass
        other.send_signal(signal.SIGKILL)
        other.wait()
    with one_run_at_a_time(tmp_path):
        pass
