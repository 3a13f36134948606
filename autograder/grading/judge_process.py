"""The grader's hold on a judge: ask for a verdict, read it, start anew when a judge was lost."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

from autograder.grading.judged import REQUEST_BYTES, Judged, JudgeEndedError
from autograder.grading.limits import Limits
from autograder.grading.sandbox import Room, SandboxError
from autograder.verdict import Heard, Verdict

if TYPE_CHECKING:
    from autograder.grading.pool import KernelPool

WEEK = 7 * 86_400
AS_LONG_AS_THE_RUN = Limits(seconds=WEEK, cpu_seconds=WEEK)


class JudgeProcess:
    """A process that never runs a student's code and gives verdicts."""

    def __init__(self, pool: KernelPool, room: Room):
        """Start it."""
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self.process = pool.fork("judge", room, AS_LONG_AS_THE_RUN, (theirs.fileno(),))
            self.process.wait_ready()
        except BaseException:
            self.channel.close()
            raise

    @property
    def alive(self) -> bool:
        """Tell whether it can be asked."""
        try:
            return self.channel.fileno() >= 0 and self.process.poll() is None
        except SandboxError:
            return False

    def ask(self, link: socket.socket, **request: Any) -> None:
        """Ask for one verdict; the answer can be read from `channel`."""
        socket.send_fds(self.channel, [json.dumps(request).encode()], [link.fileno()])

    def answer(self) -> Judged:
        """Read the verdict.

        Raises:
            JudgeEndedError: There is none and never will be.
            LookupError: There is no such exercise.
        """
        try:
            data = self.channel.recv(REQUEST_BYTES)
        except OSError:
            data = b""
        if not data:
            self.close()
            raise JudgeEndedError("the process that judges ended before its verdict")
        reply = json.loads(data)
        if "error" in reply:
            raise LookupError(reply["error"])
        return Judged(Verdict(**reply["verdict"]), reply["answered"], Heard(**reply["heard"]), reply["timed_out"])

    def close(self) -> None:
        """End it."""
        self.process.close()
        self.channel.close()
