"""The grader's hold on one confined process: wait until it is ready, interrupt it, end it, learn how it ended."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import time
from dataclasses import dataclass
from typing import Any

from autograder.grading.sandbox import SandboxError

MESSAGE_BYTES = 100_000
MILLISECONDS = 1000.0  # of a second
SECONDS_TO_START = 60.0
SECONDS_TO_END = 10.0
CLOSED = "closed"
UNSAID = {"reason": CLOSED}  # an end of the connection before any word of how the process ended
LOST = "The process that watches over a notebook has ended before the notebook; start the run again."


@dataclass(frozen=True)
class End:
    """How a confined process ended; see `keeper.Ending`."""

    code: int
    reason: str


class ForkedProcess:
    """One confined process, seen through its keeper."""

    def __init__(self, connection: socket.socket):
        """Take over the grader's end of the connection to a keeper."""
        self.connection = connection
        self.pid = 0
        self.handle = -1
        self.end: End | None = None

    def wait_ready(self, seconds: float = SECONDS_TO_START) -> dict[str, Any]:
        """Wait until the process is confined and serves.

        Raises:
            SandboxError: It could not be confined, or died on the way.
        """
        deadline = time.monotonic() + seconds
        ready: dict[str, Any] = {}  # the process may say so before its keeper has told which it is
        try:
            while True:
                message = self._next_message(deadline)
                if message.get("ready"):
                    ready = message
                if ready and self.handle >= 0:
                    return ready
                if ready is message or "pid" in message:
                    continue
                what = message.get("error") or f"it ended with {message.get('ended', 'no word')}"
                raise SandboxError(f"A confined process could not be started: {what}")
        except BaseException:
            self.close()
            raise

    def _next_message(self, deadline: float) -> dict[str, Any]:
        """Return what the keeper says next; an `error` when it says nothing in time.

        Raises:
            SandboxError: The keeper has ended without a word, or because the zygote has.
        """
        if not readable(self.connection, deadline - time.monotonic()):
            return {"error": "it was not ready in time"}
        try:
            data, descriptors, _, _ = socket.recv_fds(self.connection, MESSAGE_BYTES, 1)
        except ConnectionError:
            data, descriptors = b"", []
        message: dict[str, Any] = json.loads(data) if data else UNSAID
        if message.get("reason") == CLOSED:  # the grader alone closes, and does not listen then
            raise SandboxError(LOST)
        if "pid" in message:
            if not descriptors:  # the system has dropped it
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            self.pid, self.handle = message["pid"], descriptors[0]
        if "ended" in message:
            self.end = End(message["ended"], message["reason"])
        return message

    def poll(self) -> End | None:
        """Return how it ended, or None while it lives.

        Raises:
            SandboxError: Nobody knows any more, which is not its fault.
        """
        return self.wait(0)

    def wait(self, seconds: float = SECONDS_TO_END) -> End | None:
        """Wait for its end.

        Raises:
            SandboxError: Nobody knows any more, which is not its fault.
        """
        deadline = time.monotonic() + seconds
        while self.end is None and "error" not in self._next_message(deadline):
            continue
        return self.end

    def send_signal(self, number: int) -> None:
        """Send a signal to it, not to what it started."""
        if self.handle >= 0 and self.end is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.handle, number)

    def close(self, seconds: float = 0) -> None:
        """End it and all that it started; the keeper sees to that when the connection closes.

        Args:
            seconds: How long to wait until nothing is left; 0 leaves that to the keeper.
        """
        self.send_signal(signal.SIGKILL)
        if seconds:
            with contextlib.suppress(SandboxError):
                self.wait(seconds)
        self.connection.close()
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1
        self.end = self.end or End(-signal.SIGKILL, CLOSED)


def readable(link: socket.socket | int, seconds: float) -> bool:
    """Wait until there is something to read; `select` could not, where many files are open."""
    poll = select.poll()
    poll.register(link, select.POLLIN)
    return bool(poll.poll(max(seconds, 0) * MILLISECONDS))
