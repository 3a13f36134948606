"""The grader's hold on one confined process: wait until it is ready, interrupt it, end it, learn how it ended."""

from __future__ import annotations

import contextlib
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
SECONDS_TO_START = 60.0
SECONDS_TO_END = 10.0


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
        try:
            while True:
                message = self._next_message(deadline)
                if message.get("ready") and self.handle >= 0:
                    return message
                if "pid" in message:
                    continue
                what = message.get("error") or f"it ended with {message.get('ended', 'no word')}"
                raise SandboxError(f"A confined process could not be started: {what}")
        except BaseException:
            self.close()
            raise

    def _next_message(self, deadline: float) -> dict[str, Any]:
        if not select.select([self.connection], [], [], max(deadline - time.monotonic(), 0))[0]:
            return {"error": "it was not ready in time"}
        try:
            data, descriptors, _, _ = socket.recv_fds(self.connection, MESSAGE_BYTES, 1)
        except ConnectionError:
            data, descriptors = b"", []
        message = json.loads(data) if data else {"ended": -signal.SIGKILL, "reason": ""}
        if "pid" in message:
            self.pid, self.handle = message["pid"], descriptors[0]
        if "ended" in message:
            self.end = End(message["ended"], message["reason"])
        return message

    def poll(self) -> End | None:
        """Return how it ended, or None while it lives."""
        return self.wait(0)

    def wait(self, seconds: float = SECONDS_TO_END) -> End | None:
        """Wait for its end."""
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
            self.wait(seconds)
        self.connection.close()
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1
        self.end = self.end or End(-signal.SIGKILL, "closed")
