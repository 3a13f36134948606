"""How the grader learns of a confined process's end, and that nobody is left to tell it."""

import fcntl
import json
import os
import signal
import socket
from collections.abc import Iterator

import pytest

from autograder.grading.forked import End, ForkedProcess, readable
from autograder.grading.limits import open_many_files
from autograder.grading.sandbox import SandboxError

BEYOND_SELECT = 1024  # the first descriptor that `select` cannot watch


@pytest.fixture
def ends() -> Iterator[tuple[ForkedProcess, socket.socket]]:
    """Give the grader's hold on a process, and the keeper's end of the connection."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = ForkedProcess(ours)
    yield process, theirs
    process.close()
    theirs.close()


def test_a_process_that_was_killed_has_ended(ends: tuple[ForkedProcess, socket.socket]) -> None:
    process, keeper = ends
    assert process.poll() is None
    keeper.send(json.dumps({"ended": -signal.SIGKILL, "reason": ""}).encode())
    keeper.close()
    assert process.poll() == process.wait() == End(-signal.SIGKILL, "")


def test_a_keeper_that_ends_without_a_word_is_no_end_of_the_process(ends: tuple[ForkedProcess, socket.socket]) -> None:
    process, keeper = ends
    keeper.close()
    for ask in (process.poll, process.wait, process.wait_ready):
        with pytest.raises(SandboxError, match="start the run again"):
            ask()


def test_an_end_that_follows_from_the_zygotes_is_not_the_processs_own(
    ends: tuple[ForkedProcess, socket.socket],
) -> None:
    process, keeper = ends
    keeper.send(json.dumps({"ended": -signal.SIGKILL, "reason": "closed"}).encode())
    with pytest.raises(SandboxError, match="start the run again"):
        process.poll()


@pytest.mark.parametrize("quick", [True, False])
def test_a_process_may_be_ready_before_its_keeper_has_told_which_it_is(
    quick: bool, ends: tuple[ForkedProcess, socket.socket]
) -> None:
    process, keeper = ends
    handle = os.pidfd_open(os.getpid())
    told = [([json.dumps({"pid": os.getpid()}).encode()], [handle]), ([b'{"ready": true, "walls": {}}'], [])]
    for words, descriptors in told[::-1] if quick else told:
        socket.send_fds(keeper, words, descriptors)
    os.close(handle)
    assert process.wait_ready()["walls"] == {}
    assert process.pid == os.getpid()
    os.close(process.handle)
    process.handle = -1  # closing the process would end this one


def test_many_open_files_are_no_hindrance() -> None:
    open_many_files()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            high = fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, BEYOND_SELECT)
        except OSError as error:
            pytest.skip(f"system: so many files cannot be open here ({error})")
        try:
            assert not readable(high, 0)
            theirs.send(b"x")
            assert readable(high, 0)
        finally:
            os.close(high)
