import os
import subprocess
import sys

from autograder.browser.measuring import PeakMemory, memory_of_tree

MEGABYTE = 2**20
HELD = 200 * MEGABYTE
BESIDES = 60 * MEGABYTE  # two interpreters
CHILD_OF_CHILD = f"""
import subprocess, sys
code = "x = b'x' * {HELD}; print('ready', flush=True); input()"
subprocess.run([sys.executable, "-c", code])
"""


def test_the_memory_of_a_grandchild_counts_and_is_the_peak_after_its_end() -> None:
    started = subprocess.Popen(
        [sys.executable, "-c", CHILD_OF_CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with PeakMemory(started.pid) as peak:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        assert HELD < memory_of_tree(started.pid) < HELD + BESIDES
        peak.over.wait(1)
        started.communicate("\n")
        assert memory_of_tree(started.pid) < HELD
    assert HELD < peak.bytes < HELD + BESIDES


def test_a_process_that_is_gone_takes_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert memory_of_tree(ended.pid) == 0
    assert memory_of_tree(os.getpid()) > 0
