"""Grade a large class of small notebooks and watch the grader's own memory; kill runs at any moment and look again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
import numpy as np

from autograder.build import answered_notebook
from autograder.grading.engine import Tally, grade_chapter
from autograder.grading.options import GradeOptions
from autograder.grading.pool import KernelPool
from autograder.testing.checked_course import CHAPTER, RIGHT, make_checked_course

OUTPUT_BYTES = 500_000  # saved in each notebook, so that one that is kept shows in the memory
SHARE_OF_THE_START = 0.25  # of the class, while libraries are loaded and tables filled
KILOBYTE, MEGABYTE = 2**10, 2**20
PAGE = os.sysconf("SC_PAGE_SIZE")
SEED = 1
COMMAND = "import sys; from autograder.cli import main; main(sys.argv[1:])"


@dataclass
class Soaked:
    """How a large class went.

    Args:
        students: How many there were.
        seconds: Of the whole run, without the feedback pages.
        memory: The grader's resident bytes after each submission.
    """

    students: int
    seconds: float
    memory: list[int]

    @property
    def growth(self) -> float:
        """Return by how many bytes the memory grows with a submission: the slope of a line of least squares."""
        settled = self.memory[round(SHARE_OF_THE_START * len(self.memory)) :]
        return float(np.polyfit(np.arange(len(settled)), np.array(settled, dtype=float), 1)[0])


def resident() -> int:
    """Return the resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def make_soaked_class(folder: Path, students: int) -> Path:
    """Make a course folder with so many submissions of one short notebook that was saved with a large output."""
    course = make_checked_course(folder)
    notebook = answered_notebook(course, CHAPTER, RIGHT)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    first.outputs = [nbformat.v4.new_output("stream", text="x" * OUTPUT_BYTES)]
    text = nbformat.writes(notebook)
    for number in range(students):
        path = course / "submitted" / f"student-{number:04}" / CHAPTER / f"{CHAPTER}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return course


def soak(course: Path, pool: KernelPool | None = None, options: GradeOptions | None = None) -> Soaked:
    """Grade the class.

    Args:
        course: The course folder.
        pool: A started pool to use instead of an own one.
        options: How to grade; by default without feedback pages, which are nbgrader's.
    """
    memory: list[int] = []
    began = time.monotonic()

    def note(tally: Tally) -> None:
        if tally.done:
            memory.append(resident())

    result = grade_chapter(course, CHAPTER, options or GradeOptions(seed=SEED, feedback=False), note, pool)
    return Soaked(len(result.students), time.monotonic() - began, memory)


def kill_at_random(course: Path, seconds: float, draw: random.Random) -> bool:
    """Run `course grade` and kill it with signal 9 within so many seconds; return whether it was still running."""
    command = [sys.executable, "-c", COMMAND, "grade", CHAPTER, "--course", str(course), "--seed", str(SEED)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        try:
            run.wait(draw.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()
        return run.returncode == -signal.SIGKILL
