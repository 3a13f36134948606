"""Speak to one confined kernel: run cells, collect what they show, and have its functions judged."""

from __future__ import annotations

import signal
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from nbformat import NotebookNode

from autograder.grading.channels import Channels
from autograder.grading.forked import CLOSED, End, ForkedProcess, readable
from autograder.grading.judge_process import JudgeProcess
from autograder.grading.judged import SERVE, Judged
from autograder.grading.limits import Limits
from autograder.grading.outputs import Outputs
from autograder.grading.sandbox import Room
from autograder.verdict import Verdict

if TYPE_CHECKING:
    from autograder.grading.pool import KernelPool

SECONDS_TO_RETURN = 30.0  # from a check that was answered; a busy machine may be slow to let both go on
SECONDS_TO_STOP = 3.0  # after an interrupt; then the kernel is killed
SECONDS_FOR_STRAGGLERS = 1.0  # output that is still on its way when a cell's reply has come
SECONDS_PER_VERDICT = 120.0
Status = Literal["ok", "error", "timeout", "output", "died"]


@dataclass
class Execution:
    """What running one cell gave.

    Args:
        status: `ok`; `error` when the cell raised; `timeout` when it was stopped for time; `output` when it was
            stopped for printing without end; `died` when the kernel ended, or had ended before.
        outputs: The cell's outputs, as nbformat wants them.
        count: The number in the brackets beside the cell.
        seconds: How long it took.
        truncated: Bytes of output that were left out.
    """

    status: Status
    outputs: list[NotebookNode] = field(default_factory=list)
    count: int | None = None
    seconds: float = 0.0
    truncated: int = 0


WHY_IT_ENDED = {
    "memory": "it used more memory than it may",
    "processes": "it started more processes than it may",
    "disk": "it wrote more to disk than it may",
    "time": "the notebook used up its time",
    "cpu": "it used up its processor time",
    CLOSED: "it was stopped",
    "deaf": "it went on when it was interrupted, and had to be ended",
    "message": "it sent a larger output than any that is taken",
}


class KernelSession:
    """One kernel from its start to its end."""

    def __init__(self, pool: KernelPool, room: Room, limits: Limits, seed: int, env: dict[str, str]):
        """Start a kernel and connect to it.

        Raises:
            SandboxError: It could not be started.
        """
        self.pool, self.limits = pool, limits
        self.end: End | None = None
        self.channels = Channels(room.folder)
        self._link, theirs = socket.socketpair()
        self._link_open = True
        try:
            with theirs:
                self.process: ForkedProcess = pool.fork(
                    "kernel", room, limits, (theirs.fileno(),), seed, env=env, connection_file=self.channels.file
                )
            self.process.wait_ready()
        except BaseException:
            self._link.close()
            raise
        try:
            self.channels.open(self.process.connection.fileno(), SECONDS_TO_STOP)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Tell whether the kernel lives."""
        self.end = self.end or self.process.poll()
        return self.end is None

    @property
    def why_it_ended(self) -> str:
        """Say in a few words why the kernel is no more; empty while it lives."""
        if self.alive or self.end is None:
            return ""
        how = f"signal {-self.end.code}" if self.end.code < 0 else f"exit code {self.end.code}"
        return WHY_IT_ENDED.get(self.end.reason, f"its code ended the process ({how})")

    def execute(self, source: str, timeout: float | None = None) -> Execution:
        """Run one cell.

        Args:
            source: The cell's code.
            timeout: Seconds after which it is interrupted, and killed when that does not help.
        """
        if not self.alive:
            return Execution("died")
        began = time.monotonic()
        outputs = Outputs(self.channels.request(source), self.limits.output_bytes)
        status = self._follow(outputs, began + (self.limits.seconds if timeout is None else timeout))
        if status is None:
            status = "error" if outputs.failed else "ok"
        return Execution(status, outputs.cells, outputs.count, time.monotonic() - began, outputs.dropped)

    def _follow(self, outputs: Outputs, deadline: float) -> Status | None:
        """Collect outputs until the cell is done; None when it came to its end undisturbed."""
        status: Status | None = None
        while not outputs.done:
            now = time.monotonic()
            if now > deadline:
                if outputs.replied:
                    return status
                if status is not None:
                    self.kill("deaf")
                    return status
                status, deadline = "timeout", now + SECONDS_TO_STOP
                self.interrupt()
            if outputs.flooded and status is None:
                status, deadline = "output", now + SECONDS_TO_STOP
                self.interrupt()
            was_replied = outputs.replied
            if not self._take(outputs, deadline - now) or outputs.too_long:
                return status or ("output" if outputs.too_long else "died")
            if outputs.replied and not was_replied:
                deadline = time.monotonic() + SECONDS_FOR_STRAGGLERS
        return status

    def _take(self, outputs: Outputs, seconds: float) -> bool:
        """Take what has come; False when the kernel has ended and all that it sent was taken."""
        ready = self.channels.wait(seconds)
        if self.channels.take(ready, outputs):
            return True
        if self.channels.cut and self.process.wait(SECONDS_FOR_STRAGGLERS) is None:
            outputs.too_long = True  # the kernel lives, but a message was larger than any that is taken
            self.kill("message")
        return self.process.connection.fileno() not in ready or self.alive

    def verdict(
        self,
        exercise: str,
        hidden: bool,
        seed: int,
        solution: str | None = None,
        timeout: float = SECONDS_PER_VERDICT,
    ) -> Judged:
        """Have a function of the notebook judged in the judge's process.

        Args:
            exercise: The exercise's name.
            hidden: Whether the hidden cases count too.
            seed: Seed of the inputs.
            solution: The function's name in the notebook, if it is not the exercise's.
            timeout: Seconds for all cases together.

        Raises:
            LookupError: There is no such exercise.
            JudgeEndedError: The judge has ended, which is not the notebook's fault.
        """
        if not self.alive or not self._link_open:
            why = self.why_it_ended or "it stopped answering in an earlier check"
            return self._unanswered(exercise, seed, why)
        judge = self.pool.judge()
        outputs = Outputs(self.channels.request(SERVE, silent=True), self.limits.output_bytes)
        judge.ask(
            self._link,
            exercise=exercise,
            solution=solution or exercise,
            hidden=hidden,
            seed=seed,
        )
        judged = self._await_verdict(judge, outputs, time.monotonic() + timeout)
        if judged is None:
            judged = self._unanswered(exercise, seed, "it took too long")
        if not judged.answered:
            self._hang_up()
        grace = SECONDS_TO_RETURN if judged.answered else 0
        if self._follow(outputs, time.monotonic() + grace) is not None:
            self._hang_up()
        return judged

    def _await_verdict(self, judge: JudgeProcess, outputs: Outputs, deadline: float) -> Judged | None:
        """Wait for the judge; when the student's process stops serving, let the judge know at once."""
        verdict = judge.channel.fileno()
        with self.channels.also(verdict):
            while (seconds := deadline - time.monotonic()) > 0:
                if verdict in self.channels.wait(seconds):
                    return judge.answer()
                if not self._take(outputs, 0) or outputs.too_long or outputs.replied:
                    if readable(verdict, 0):
                        return judge.answer()  # it came meanwhile: the judge gives it before it lets the process go
                    break
        self._hang_up()
        if readable(verdict, SECONDS_TO_STOP):
            return judge.answer()
        judge.close()
        return None

    def _unanswered(self, exercise: str, seed: int, why: str) -> Judged:
        message = f"{exercise}: no verdict, because the notebook's process did not answer properly: {why}."
        return Judged(Verdict(False, exercise, None, None, message, seed), answered=False)

    def _hang_up(self) -> None:
        """End the link; the judge, which waits at its other end, learns it at once."""
        if self._link_open:
            self._link_open = False
            try:
                self._link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the running cell; a message wakes one that awaits, which sees no signal asleep."""
        self.process.send_signal(signal.SIGINT)
        self.channels.wake()

    def kill(self, why: str = CLOSED) -> None:
        """End the kernel and all that it started, for a reason of `WHY_IT_ENDED`, unless it has ended before."""
        if self.alive:
            self.process.close(seconds=SECONDS_TO_STOP)
            self.end = End(-signal.SIGKILL, why)

    def close(self) -> None:
        """End the kernel without waiting, and let its sockets go."""
        self.channels.close()
        self._link.close()
        self.process.close()
