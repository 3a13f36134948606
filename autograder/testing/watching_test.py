"""Watching sees a process that runs and no other, and waits no longer than it may."""

import secrets
import subprocess
import sys

from autograder.testing.watching import PATIENCE, processes_with, soon


def test_a_process_is_found_by_its_mark_until_it_ends() -> None:
    mark = f"mark-{secrets.token_hex(8)}"
    with subprocess.Popen([sys.executable, "-c", "input()", mark], stdin=subprocess.PIPE) as process:
        assert soon(lambda: processes_with(mark) == [process.pid], PATIENCE)
        process.communicate(b"\n")
    assert processes_with(mark) == []


def test_what_never_holds_is_looked_at_a_last_time_and_given_up() -> None:
    looks: list[int] = []
    assert not soon(lambda: bool(looks.append(1)), 0)
    assert looks == [1]
