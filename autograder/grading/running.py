"""Run one repaired notebook in its one-shot kernel; have its checks judged outside, and score each graded cell."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from nbformat import NotebookNode
from nbformat.v4 import new_output

from autograder.errors import CourseError
from autograder.grading.cells import gives_points, grade_id
from autograder.grading.keys import seed_for
from autograder.grading.kit import ChapterKit, CheckCall
from autograder.grading.limits import Limits
from autograder.grading.verdicts import NO_VERDICT, TIMED_OUT, VERDICT_TYPE, quote

if TYPE_CHECKING:
    from autograder.grading.judged import Judged
    from autograder.grading.session import Execution, KernelSession

IMPORT_CHECK = "from autograder import check"
SLOW_SECONDS = 2.0  # a cell that takes longer is named in the log
CHECK_FAILED, FLOODED = "CheckFailed", "TooMuchOutput"
DIED = "the code ended the notebook's process"
DEAF = {
    "timeout": "a cell ran beyond its time, and could not be interrupted",
    "output": "a cell printed without end, and could not be interrupted",
}


@dataclass(frozen=True)
class Terms:
    """For whom a submission is graded, and what it may use.

    Args:
        student: Whose it is.
        secret: What the student's seeds are made with.
        cell_seconds: How long one cell may run.
        limits: What the notebook may use in all.
        work: A key of what was handed in, which takes part in the seeds.
    """

    student: str
    secret: bytes
    cell_seconds: float
    limits: Limits
    work: str = ""

    def seed(self, chapter: str, exercise: str) -> int:
        """Return the seed of an exercise's inputs."""
        return seed_for(self.secret, self.student, chapter, exercise, self.work)


class NotebookRun:
    """One notebook's way through a kernel that nobody else uses."""

    def __init__(self, kernel: KernelSession, notebook: NotebookNode, kit: ChapterKit, terms: Terms):
        """Prepare; `run` does the work."""
        self.kernel, self.notebook, self.kit, self.terms = kernel, notebook, kit, terms
        self.scores: dict[str, float] = {}
        self.seconds: dict[str, float] = {}
        self.slow_cells: dict[str, float] = {}
        self.cell_seconds = self.verdict_seconds = 0.0
        self.has_check = False
        self.ended_because = ""
        self.too_slow: dict[CheckCall, Judged] = {}

    def run(self) -> None:
        """Run every code cell in order; graded ones get a score."""
        for place, cell in enumerate(self.notebook.cells, start=1):
            if cell.cell_type != "code":
                continue
            name = str(grade_id(cell))
            if name in self.kit.calls:
                self.judge(cell, self.kit.calls[name])
            elif gives_points(cell) and not cell.metadata["nbgrader"].get("solution"):
                self.test_inside(cell)
            elif cell.source.strip():
                self.note_slow(place, cell, self.execute(cell).seconds)

    def note_slow(self, place: int, cell: NotebookNode, seconds: float) -> None:
        """Note a cell that takes long, by its place and its first line."""
        if seconds > SLOW_SECONDS:
            self.slow_cells[f"cell {place}: {quote(cell.source)}"] = round(seconds, 1)

    def execute(self, cell: NotebookNode) -> Execution:
        """Run a cell; what a student's code publishes as a verdict is none."""
        self.too_slow.clear()  # the cell may define the function anew
        found = self.kernel.execute(cell.source, self.terms.cell_seconds)
        self.cell_seconds += found.seconds
        cell.outputs = found.outputs
        cell.execution_count = None if found.status == "died" else found.count  # whether it still comes is chance
        if not gives_points(cell):
            for output in cell.outputs:
                output.get("data", {}).pop(VERDICT_TYPE, None)
        if found.status == "timeout":
            limit = f"stopped after {self.terms.cell_seconds:g} seconds"
            cell.outputs.append(new_error(TIMED_OUT, limit))
        elif found.status == "output":
            cell.outputs.append(new_error(FLOODED, "stopped, because it printed without end"))
        elif found.status == "died" and found.seconds:
            cell.outputs.append(new_error("KernelDied", self.kernel.why_it_ended or DIED))
        if found.status in DEAF and not self.kernel.alive:
            self.ended_because = self.ended_because or DEAF[found.status]
        return found

    def judge(self, cell: NotebookNode, call: CheckCall) -> None:
        """Have a test cell's check judged outside; its outputs are made here, not in the student's process.

        Raises:
            CourseError: The cell checks what is no exercise, which is the author's mistake.
        """
        if not self.kernel.alive:
            self.no_verdict(cell)
            return
        began = time.monotonic()
        try:
            judged = self.verdict(call)
        except LookupError:
            message = f"The test cell {grade_id(cell)} checks {call.exercise!r}, which is no exercise."
            raise CourseError(message) from None
        seconds = time.monotonic() - began
        self.verdict_seconds += seconds
        cell.outputs, cell.execution_count = verdict_outputs(judged), None
        self.score(cell, float(judged.answered and judged.verdict.passed), seconds)
        if not self.has_check and self.kernel.alive:  # later cells may call it, as after the test cell itself
            self.kernel.execute(IMPORT_CHECK, self.terms.cell_seconds)
            self.has_check = True

    def verdict(self, call: CheckCall) -> Judged:
        """Have one check judged; what has just not returned in time for the visible cases is not waited for again."""
        known = self.too_slow.get(replace(call, hidden=False))  # the hidden tier begins with the same cases
        if known is not None:
            return known
        seed = self.terms.seed(self.kit.chapter, call.exercise)
        judged = self.kernel.verdict(call.exercise, call.hidden, seed, call.solution)
        if judged.timed_out:
            self.too_slow[call] = judged
        return judged

    def test_inside(self, cell: NotebookNode) -> None:
        """Run a test that is no call of `check` where the student's code ran."""
        if not self.kernel.alive:
            self.no_verdict(cell)
            return
        found = self.execute(cell)
        if found.status == "died":
            self.no_verdict(cell)
            return
        share, reason = share_inside(cell, found)
        if reason:
            cell.outputs.append(new_error("NoScore", reason))
        self.score(cell, share, found.seconds)

    def no_verdict(self, cell: NotebookNode) -> None:
        """Give a graded cell no points, with the reason, since the kernel has ended."""
        why = self.ended_because or self.kernel.why_it_ended or DIED
        cell.outputs = [new_error(NO_VERDICT, f"There is no verdict, because the notebook had ended: {why}.")]
        self.score(cell, 0.0, 0.0)

    def score(self, cell: NotebookNode, share: float, seconds: float) -> None:
        """Note a graded cell's points, as a share of its maximum between 0 and 1."""
        name = str(grade_id(cell))
        self.scores[name] = share * float(cell.metadata["nbgrader"]["points"])
        self.seconds[name] = seconds


def new_error(name: str, value: str, lines: list[str] | None = None) -> NotebookNode:
    """Return the output of an error as a notebook shows it."""
    return new_output("error", ename=name, evalue=value, traceback=lines or [f"{name}: {value}"])


def verdict_outputs(judged: Judged) -> list[NotebookNode]:
    """Return what a test cell shows: what the solution printed, the verdict, and an error if it did not pass."""
    verdict, heard = judged.verdict, judged.heard
    printed = heard.printed + ("" if heard.printed.endswith("\n") or not heard.printed else "\n")
    if heard.left_out:
        printed += f"… and {heard.left_out:,} more characters that your code printed are left out.\n"
    printed += "".join(f"Your code warned: {text}\n" for text in heard.warned)
    outputs = [new_output("stream", name="stdout", text=printed)] if printed else []
    passed = verdict.passed and judged.answered
    shown = verdict.message if passed else f"{verdict.exercise}: not yet"
    outputs.append(new_output("display_data", {VERDICT_TYPE: asdict(verdict), "text/plain": shown}))
    if not judged.answered:
        outputs.append(new_error(NO_VERDICT, verdict.message))
    elif not passed:
        outputs.append(new_error(CHECK_FAILED, verdict.message, verdict.message.splitlines()))
    return outputs


def share_inside(cell: NotebookNode, found: Execution) -> tuple[float, str]:
    """Return which share of its points a test in the student's process gives, and why none if that needs a word.

    As nbgrader has it, a cell without an error gives all, and one that ends in a number gives so many points;
    what is said on stderr costs nothing, and no value but a number from 0 to the maximum counts.
    """
    maximum = float(cell.metadata["nbgrader"]["points"])
    if found.status != "ok" or any(output.output_type == "error" for output in cell.outputs):
        return 0.0, ""
    values = [output for output in cell.outputs if output.output_type == "execute_result"]
    if not values:
        return 1.0, ""
    text = values[-1].get("data", {}).get("text/plain", "")
    try:
        points = float(text)
    except (TypeError, ValueError):
        points = math.nan
    if not 0 <= points <= maximum:
        return 0.0, f"the test cell ended in a value that is no number from 0 to {maximum:g}"
    return points / maximum if maximum else 0.0, ""
