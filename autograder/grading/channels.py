"""The sockets of one kernel: send requests, wait, and take what it sends, whatever that is."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import select
import time
from collections.abc import Container, Iterator
from typing import Any

from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session

from autograder.grading.outputs import Outputs
from autograder.grading.sandbox import SandboxError
from autograder.grading.wire import Wire, WireError

KEY_BYTES = 32
SECONDS_TO_GREET = 60.0
PORTS = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4, "hb": 5}  # suffixes of socket files, not ports

Ready = Container[int]  # the descriptors that have something


class Channels:
    """The two sockets over which cells are sent and their outputs come, and what else ends a wait."""

    def __init__(self, folder: str):
        """Write the connection file that the kernel is started with.

        Args:
            folder: Where the kernel's sockets and the file lie.
        """
        self.session = Session(key=secrets.token_hex(KEY_BYTES).encode())
        self.file = os.path.join(folder, "kernel.json")
        self._ip = os.path.join(folder, "k")
        self._too_large = False
        self._wires: list[Wire] = []
        ports: dict[str, Any] = {f"{name}_port": number for name, number in PORTS.items()}
        write_connection_file(self.file, ip=self._ip, key=self.session.key, transport="ipc", **ports)

    def open(self, process: int, seconds: float) -> None:
        """Connect to the kernel that listens.

        Args:
            process: The descriptor that tells when the kernel's process ends.
            seconds: How long its welcome is waited for.

        Raises:
            SandboxError: It does not answer.
        """
        try:
            for kind, channel in (("DEALER", "shell"), ("SUB", "iopub")):
                self._wires.append(Wire(f"{self._ip}-{PORTS[channel]}", kind, SECONDS_TO_GREET))
        except (OSError, WireError) as error:
            self.close()
            raise SandboxError(f"A kernel was started but does not answer: {error}") from None
        self._shell, self._iopub = self._wires
        self._poll = select.poll()
        for source in (self._shell, self._iopub, process):
            self._poll.register(source, select.POLLIN)
        self._wait_for_welcome(seconds)

    def _wait_for_welcome(self, seconds: float) -> None:
        """Wait for the first message on the outputs' channel: from now on none is lost."""
        first = select.poll()
        first.register(self._iopub, select.POLLIN)
        deadline = time.monotonic() + seconds
        while not self._iopub.closed and (left := deadline - time.monotonic()) > 0:
            if first.poll(math.ceil(left * 1000)) and self._iopub.receive():
                return

    def request(self, source: str, silent: bool = False) -> str:
        """Ask the kernel to run code, and give the request's message id."""
        content = {
            "code": source, "silent": silent, "store_history": not silent, "user_expressions": {},
            "allow_stdin": False, "stop_on_error": False,
        }  # fmt: skip
        message = self.session.msg("execute_request", content=content)
        self._shell.send(self.session.serialize(message))
        return message["header"]["msg_id"]

    def wake(self) -> None:
        """Send what wakes a kernel that awaits; it asks for nothing."""
        self._shell.send(self.session.serialize(self.session.msg("kernel_info_request")))

    def wait(self, seconds: float) -> Ready:
        """Wait until something comes or the kernel ends, and tell where."""
        return [descriptor for descriptor, _ in self._poll.poll(math.ceil(max(seconds, 0) * 1000))]

    @contextlib.contextmanager
    def also(self, descriptor: int) -> Iterator[None]:
        """Let a descriptor end the waits as well."""
        self._poll.register(descriptor, select.POLLIN)
        try:
            yield
        finally:
            self._poll.unregister(descriptor)

    def take(self, ready: Ready, outputs: Outputs) -> bool:
        """Hand on what has come; tell whether there were outputs, so that more may follow."""
        more = self._iopub.fileno() in ready
        for channel in (self._iopub, self._shell):
            if channel.fileno() in ready and not self._too_large:
                self._take_from(channel, outputs)
        return more and not self._too_large

    def _take_from(self, channel: Wire, outputs: Outputs) -> None:
        try:
            for frames in channel.receive():
                outputs.take(self._parse(frames), sum(map(len, frames)))
        except WireError:
            self._too_large = True
        if channel.closed or self._too_large:
            with contextlib.suppress(KeyError):
                self._poll.unregister(channel)

    @property
    def cut(self) -> bool:
        """Tell whether a connection is cut, by the kernel's end or because a message is too large."""
        return self._too_large or any(channel.closed for channel in self._wires)

    def _parse(self, frames: list[bytes]) -> dict[str, Any]:
        """Read one message; whatever is not one is an empty one."""
        try:
            _, parts = self.session.feed_identities(frames, copy=True)
            message = self.session.deserialize(parts, content=True, copy=True)
            return message if isinstance(message, dict) else {}
        except Exception:  # the kernel is the student's, and may send anything
            return {}

    def close(self) -> None:
        """Let the sockets go."""
        for channel in self._wires:
            channel.close()
