"""One connection to a socket of a kernel, read in pieces of a bounded size.

libzmq holds all parts of a message until the last has come, and limits the size of each part but not of all
together, so that a kernel could fill the grader's memory. Of its protocol, little is needed here: the greeting, one
command, and frames.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable

MOST_BYTES = 64 * 2**20  # of one message, all parts together
MOST_PARTS = 1_000
READ_AT_ONCE = 2**20
SECONDS_TO_SEND = 30.0  # a kernel's own thread reads at once, whatever its cells do; one that does not is stopped
MORE, LONG, COMMAND = 1, 2, 4  # flags of a frame
SHORT_FRAME, SHORT_HEAD, LONG_HEAD = 255, 2, 9
GREETING_BYTES, MAJOR_VERSION = 64, 10  # the latter is a place in the greeting
LEAST_WAIT = 0.001  # seconds; 0 would mean not to wait at all
GREETING = b"\xff" + bytes(8) + b"\x7f" + bytes([3, 0]) + b"NULL".ljust(20, b"\0")
SUBSCRIBE_TO_ALL = [b"\x01"]


class WireError(Exception):
    """What comes is too large, or is not the protocol."""


class Wire:
    """A DEALER or SUB socket of ZMTP 3.0 over a socket file.

    Source: ZeroMQ RFC 23/ZMTP 3.0.
    """

    def __init__(self, path: str, kind: str, seconds: float):
        """Connect.

        Args:
            path: The socket file.
            kind: `DEALER` or `SUB`; the latter subscribes to everything.
            seconds: How long the other side may take for its greeting.

        Raises:
            OSError: Nobody listens there, or nothing is answered.
            WireError: What answers does not speak the protocol.
        """
        self.closed = False
        self._received = bytearray()
        self._parts: list[bytes] = []
        self._bytes = 0
        self._line = socket.socket(socket.AF_UNIX)
        try:
            self._line.settimeout(seconds)
            self._line.connect(path)
            self._greet(kind, time.monotonic() + seconds)
        except BaseException:
            self._line.close()
            raise

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._line.fileno()

    def _greet(self, kind: str, deadline: float) -> None:
        name, value = b"Socket-Type", kind.encode()
        ready = b"\x05READY" + bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value
        self._line.sendall(GREETING.ljust(GREETING_BYTES, b"\0") + bytes([COMMAND, len(ready)]) + ready)
        self._await(GREETING_BYTES, deadline)
        if self._received[0] != GREETING[0] or self._received[MAJOR_VERSION] < GREETING[MAJOR_VERSION]:
            raise WireError("what answers is no ZeroMQ of today")
        del self._received[:GREETING_BYTES]
        self._await(SHORT_HEAD, deadline)
        if self._received[0] != COMMAND:
            raise WireError("what answers is not ready")
        frame = SHORT_HEAD + self._received[1]
        self._await(frame, deadline)  # a message that comes before its own READY is an error to libzmq
        del self._received[:frame]
        if kind == "SUB":
            self.send(SUBSCRIBE_TO_ALL)

    def _await(self, count: int, deadline: float) -> None:
        """Read until so many bytes are there."""
        while len(self._received) < count:
            self._line.settimeout(max(deadline - time.monotonic(), LEAST_WAIT))
            piece = self._line.recv(count - len(self._received))
            if not piece:
                raise WireError("the connection was closed")
            self._received += piece

    def send(self, parts: Iterable[bytes]) -> None:
        """Send one message; where it cannot be sent, the connection is closed."""
        parts = [bytes(part) for part in parts]
        frames = bytearray()
        for place, part in enumerate(parts, 1):
            flags = MORE if place < len(parts) else 0
            size = len(part)
            frames += bytes([flags, size]) if size <= SHORT_FRAME else bytes([flags | LONG]) + size.to_bytes(8, "big")
            frames += part
        try:
            self._line.settimeout(SECONDS_TO_SEND)
            self._line.sendall(frames)
        except OSError:
            self.closed = True

    def receive(self) -> list[list[bytes]]:
        """Return the messages that have come whole, after one look without waiting.

        Raises:
            WireError: A message is larger than any that is taken.
        """
        try:
            self._line.setblocking(False)
            piece = self._line.recv(READ_AT_ONCE)
        except BlockingIOError:
            return []
        except OSError:
            piece = b""
        self.closed = self.closed or not piece
        self._received += piece
        return self._whole_messages()

    def _whole_messages(self) -> list[list[bytes]]:
        found: list[list[bytes]] = []
        at = 0
        while head := self._head(at):
            flags, begin, end = head
            if not flags & COMMAND:
                self._check(end - begin)
            if end > len(self._received):
                break
            if not flags & COMMAND:
                self._parts.append(bytes(self._received[begin:end]))
                self._bytes += end - begin
                if not flags & MORE:
                    found.append(self._parts)
                    self._parts, self._bytes = [], 0
            at = end
        del self._received[:at]
        return found

    def _head(self, at: int) -> tuple[int, int, int] | None:
        """Return the flags, begin and end of the frame at a place, if its head has come."""
        flags = self._received[at] if at < len(self._received) else 0
        begin = at + (LONG_HEAD if flags & LONG else SHORT_HEAD)
        if begin > len(self._received):
            return None
        size = int.from_bytes(self._received[at + 1 : begin], "big")
        if size > MOST_BYTES:
            raise WireError(f"one part has {size:,} bytes")
        return flags, begin, begin + size

    def _check(self, size: int) -> None:
        if self._bytes + size > MOST_BYTES or len(self._parts) >= MOST_PARTS:
            raise WireError(f"one message has more than {MOST_BYTES:,} bytes or {MOST_PARTS} parts")

    def close(self) -> None:
        """Let the connection go."""
        self.closed = True
        self._line.close()
