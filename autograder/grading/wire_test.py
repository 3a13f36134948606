"""The wire speaks with sockets of libzmq itself, and takes no more than it says."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zmq

from autograder.grading import wire
from autograder.grading.wire import Wire, WireError

PATIENCE = 20.0  # seconds that a loaded machine may need for what takes a moment
STEP = 50_000  # bytes that surely fit between two ends
MESSAGES = [[b"one"], [b"", b"x" * 255, b"y" * 256], [b"z" * (3 * 2**20), b"end"]]


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Give a path for a socket file."""
    return str(tmp_path / "s")


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    """Give libzmq's context."""
    context = zmq.Context()
    yield context
    context.destroy(linger=0)


@pytest.fixture
def raw(place: str) -> Iterator[tuple[socket.socket, Wire]]:
    """Give the two ends of a wire, of which the far one writes whatever a test wants."""
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(place)
        service.listen()
        service.settimeout(PATIENCE)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Wire, "_greet", lambda *_: None)
            near = Wire(place, "SUB", PATIENCE)
        far, _ = service.accept()
        far.settimeout(PATIENCE)
        yield far, near
        far.close()
        near.close()


def receive(line: Wire, count: int) -> list[list[bytes]]:
    """Wait for messages."""
    found: list[list[bytes]] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < deadline:
        found += line.receive()
    return found


def feed(ends: tuple[socket.socket, Wire], data: bytes) -> list[list[bytes]]:
    """Write bytes in small steps, as fast as the wire takes them."""
    found: list[list[bytes]] = []
    for begin in range(0, len(data), STEP):
        ends[0].sendall(data[begin : begin + STEP])
        found += ends[1].receive()
    return found


def test_requests_and_replies_are_those_of_libzmq(context: zmq.Context[zmq.Socket[bytes]], place: str) -> None:
    router = context.socket(zmq.ROUTER)
    router.bind(f"ipc://{place}")
    line = Wire(place, "DEALER", PATIENCE)
    for message in MESSAGES:
        line.send(message)
        assert router.poll(PATIENCE * 1000)
        identity, *parts = router.recv_multipart()
        assert parts == message
        router.send_multipart([identity, *message])
    assert receive(line, len(MESSAGES)) == MESSAGES
    line.close()
    router.close(0)


def test_what_is_published_comes(context: zmq.Context[zmq.Socket[bytes]], place: str) -> None:
    publisher = context.socket(zmq.XPUB)
    publisher.bind(f"ipc://{place}")
    line = Wire(place, "SUB", PATIENCE)
    assert publisher.poll(PATIENCE * 1000)
    assert publisher.recv() == b"\x01"
    for message in MESSAGES:
        publisher.send_multipart(message)
    assert receive(line, len(MESSAGES)) == MESSAGES
    publisher.close(0)
    deadline = time.monotonic() + PATIENCE
    while not line.closed and time.monotonic() < deadline:
        assert line.receive() == []
    assert line.closed
    line.close()


def test_a_message_that_comes_byte_by_byte_is_put_together(raw: tuple[socket.socket, Wire]) -> None:
    data = b"\x01\x02ab" + b"\x04\x03\x02go" + b"\x02" + (3).to_bytes(8, "big") + b"cde"
    found = [message for byte in data for message in feed(raw, bytes([byte]))]
    assert found == [[b"ab", b"cde"]]


def test_a_part_that_is_too_large_is_refused_before_it_comes(raw: tuple[socket.socket, Wire]) -> None:
    for flags in (wire.LONG, wire.LONG | wire.COMMAND):
        with pytest.raises(WireError, match="one part"):
            feed(raw, bytes([flags]) + (wire.MOST_BYTES + 1).to_bytes(8, "big"))


def test_parts_that_are_too_large_together_are_refused(
    raw: tuple[socket.socket, Wire], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MOST_BYTES", 1000)
    part = b"\x01\xff" + bytes(255)
    assert feed(raw, part * 3 + b"\x00\x01x") == [[*[bytes(255)] * 3, b"x"]]
    with pytest.raises(WireError, match="one message"):
        feed(raw, part * 4)


def test_too_many_parts_are_refused_however_small(raw: tuple[socket.socket, Wire]) -> None:
    with pytest.raises(WireError, match="one message"):
        feed(raw, b"\x01\x00" * (wire.MOST_PARTS + 1))


def test_what_does_not_greet_is_refused(place: str) -> None:
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(place)
        service.listen()
        with pytest.raises(TimeoutError):
            Wire(place, "SUB", 0.1)


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request".ljust(64), wire.GREETING.ljust(64, b"\0") + b"\x00\x00"]
)
def test_what_speaks_something_else_is_refused(answer: bytes, place: str) -> None:
    with socket.socket(socket.AF_UNIX) as service, ThreadPoolExecutor(1) as other:
        service.bind(place)
        service.listen()
        wire_there = other.submit(Wire, place, "SUB", PATIENCE)
        far, _ = service.accept()
        with far, pytest.raises(WireError, match="what answers"):
            far.sendall(answer)
            wire_there.result()


def test_a_side_that_does_not_read_closes_the_wire_instead_of_holding_it(
    raw: tuple[socket.socket, Wire], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "SECONDS_TO_SEND", 0.1)
    raw[1].send([bytes(4 * 2**20)])
    assert raw[1].closed
