"""The sockets of one kernel: send requests, wait, and take what it sends, whatever that is."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import zmq
from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session

from autograder.grading.outputs import Outputs

LARGEST_MESSAGE = 64 * 2**20
KEY_BYTES = 32
MESSAGES_WAITING = 10  # beside those that the kernel itself holds back
MESSAGES_AT_ONCE = 200  # then the clock is looked at again
PORTS = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4, "hb": 5}  # suffixes of socket files, not ports

Ready = Mapping[Any, int]  # the sockets and descriptors that have something


class Channels:
    """The two sockets over which cells are sent and their outputs come, and what else ends a wait."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], folder: str):
        """Write the connection file that the kernel is started with.

        Args:
            context: Makes the sockets.
            folder: Where the kernel's sockets and the file lie.
        """
        self.session = Session(key=secrets.token_hex(KEY_BYTES).encode())
        self.file = os.path.join(folder, "kernel.json")
        self._context, self._ip = context, os.path.join(folder, "k")
        ports: dict[str, Any] = {f"{name}_port": number for name, number in PORTS.items()}
        write_connection_file(self.file, ip=self._ip, key=self.session.key, transport="ipc", **ports)

    def open(self, process: int, seconds: float) -> None:
        """Connect to the kernel that listens.

        Args:
            process: The descriptor that tells when the kernel's process ends.
            seconds: How long its welcome is waited for.
        """
        self._shell = self._connect(zmq.DEALER, "shell")
        self._iopub = self._connect(zmq.SUB, "iopub")
        self._poller = zmq.Poller()
        self._monitors = [channel.get_monitor_socket(zmq.EVENT_DISCONNECTED) for channel in (self._shell, self._iopub)]
        for source in (self._shell, self._iopub, process, *self._monitors):
            self._poller.register(source, zmq.POLLIN)
        self._iopub.poll(round(seconds * 1000))  # the welcome: from now on no output is lost

    def _connect(self, kind: int, channel: str) -> zmq.Socket[bytes]:
        found = self._context.socket(kind)
        found.linger = 0
        found.rcvhwm = MESSAGES_WAITING
        found.maxmsgsize = LARGEST_MESSAGE
        found.reconnect_ivl = -1  # what listens there later is not our kernel
        if kind == zmq.SUB:
            found.subscribe(b"")
        else:
            found.identity = self.session.bsession
        found.connect(f"ipc://{self._ip}-{PORTS[channel]}")
        return found

    def request(self, source: str, silent: bool = False) -> str:
        """Ask the kernel to run code, and give the request's message id."""
        content = {
            "code": source, "silent": silent, "store_history": not silent, "user_expressions": {},
            "allow_stdin": False, "stop_on_error": False,
        }  # fmt: skip
        message = self.session.msg("execute_request", content=content)
        self.session.send(self._shell, message)
        return message["header"]["msg_id"]

    def wake(self) -> None:
        """Send what wakes a kernel that awaits; it asks for nothing."""
        if self._shell.poll(0, zmq.POLLOUT):  # where nobody listens any more, sending would wait for ever
            self.session.send(self._shell, self.session.msg("kernel_info_request"))

    def wait(self, seconds: float) -> Ready:
        """Wait until something comes or the kernel ends, and tell where."""
        return dict(self._poller.poll(math.ceil(max(seconds, 0) * 1000)))

    @contextlib.contextmanager
    def also(self, descriptor: int) -> Iterator[None]:
        """Let a descriptor end the waits as well."""
        self._poller.register(descriptor, zmq.POLLIN)
        try:
            yield
        finally:
            self._poller.unregister(descriptor)

    def take(self, ready: Ready, outputs: Outputs) -> bool:
        """Hand on what has come; tell whether there were outputs, so that more may follow."""
        for channel in (self._iopub, self._shell):
            if channel in ready:
                for _ in range(MESSAGES_AT_ONCE):
                    try:
                        frames = channel.recv_multipart(zmq.NOBLOCK)
                    except zmq.Again:
                        break
                    outputs.take(self._parse(frames), sum(map(len, frames)))
        return self._iopub in ready

    def cut(self, ready: Ready) -> bool:
        """Tell whether a connection was cut, by the kernel's end or by a message that is too large."""
        return any(monitor in ready for monitor in self._monitors)

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
        for channel in (self._shell, self._iopub):
            channel.disable_monitor()
        for channel in (self._shell, self._iopub, *self._monitors):
            channel.close(0)
