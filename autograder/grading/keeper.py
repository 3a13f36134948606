"""Stay beside one confined process: hold it to its limits, tell how it ended, and leave nothing of it behind.

A keeper is a fork of the zygote that never runs a student's code. It is outside the walls, so what is inside can
neither see nor stop it. When the grader's end of the connection closes, for whatever reason, it ends all.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import stat
import time
from dataclasses import dataclass

from autograder.grading.limits import MEGABYTE, Limits
from autograder.grading.sandbox import NAMESPACES, Room

TICK_MS = 100
TICKS_PER_DISK_LOOK = 5
FRESH_KERNEL_MB = 256  # what a kernel occupies before it has done anything, with room to spare
PAGE = os.sysconf("SC_PAGE_SIZE")
BLOCK = 512  # bytes, the unit of st_blocks
SWEEPS = 50  # a fork bomb is killed faster than it grows, yet not for ever


@dataclass(frozen=True)
class Ending:
    """How a confined process ended.

    Args:
        code: Its exit code, or minus the signal that killed it.
        reason: The limit that it met (`memory`, `processes`, `disk`, `time`, `cpu`), `closed` when the grader
            ended it, or an empty text when it ended by itself.
    """

    code: int
    reason: str


def keep(pid: int, connection: socket.socket, room: Room, limits: Limits, zygote: int) -> Ending:
    """Watch a child until it ends; no process of its is left when this returns."""
    ended = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(connection, select.POLLIN)
    reason, tick, deadline = "", 0, time.monotonic() + limits.seconds
    while not reason:
        ready = [descriptor for descriptor, _ in poll.poll(TICK_MS)]
        if ended in ready:
            break
        tick += 1
        if connection.fileno() in ready or os.getppid() != zygote:
            reason = "closed"
        elif time.monotonic() > deadline:
            reason = "time"
        else:
            reason = _over(pid, room, limits, look_at_disk=tick % TICKS_PER_DISK_LOOK == 0)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    if room.kind != NAMESPACES:
        kill_descendants()
    code = os.waitstatus_to_exitcode(status)
    if not reason and code < 0 and usage.ru_utime + usage.ru_stime >= limits.cpu_seconds:
        reason = "cpu"
    return Ending(code, reason)


def _over(pid: int, room: Room, limits: Limits, look_at_disk: bool) -> str:
    """Name the limit that is exceeded, if one is."""
    _reap(pid)
    processes = descendants()
    if len(processes) > limits.processes:
        return "processes"
    allowed = (limits.memory_mb + FRESH_KERNEL_MB) * MEGABYTE
    if sum(map(_resident, processes)) > allowed and sum(map(_proportional, processes)) > allowed:
        return "memory"
    if look_at_disk:
        folders = [room.folder, *([room.work] if room.work else [])]
        nameless = _nameless(processes)
        if any(_too_much(folder, limits, nameless) for folder in folders):
            return "disk"
    return ""


def _reap(pid: int) -> None:
    """Collect adopted orphans, but leave the child itself to be waited for with its usage."""
    with contextlib.suppress(ChildProcessError):
        for orphan in _children(os.getpid()):
            if orphan != pid:
                os.waitpid(orphan, os.WNOHANG)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    return found


def descendants() -> list[int]:
    """List every process below this one."""
    found, waiting = [], _children(os.getpid())
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += _children(pid)
    return found


def kill_descendants() -> None:
    """End every process below this one, also those that started sessions of their own."""
    for _ in range(SWEEPS):
        found = descendants()
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)


def _resident(pid: int) -> int:
    """Return a process's memory in bytes, pages that it shares counted in full: cheap, and never too low."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE
    return 0


def _proportional(pid: int) -> int:
    """Return a process's memory in bytes, its part of shared pages: exact, and slow."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return _resident(pid)


def _nameless(processes: list[int]) -> int:
    """Return the bytes of the files that are deleted but still open, each counted once."""
    found: dict[tuple[int, int], int] = {}
    for pid in processes:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
            for entry in descriptors:
                with contextlib.suppress(OSError):
                    held = os.stat(entry.path)
                    if stat.S_ISREG(held.st_mode) and held.st_nlink == 0:
                        found[held.st_dev, held.st_ino] = held.st_blocks * BLOCK
    return sum(found.values())


def _too_much(folder: str, limits: Limits, nameless: int) -> bool:
    """Tell whether a folder holds too many bytes, or too many files; links are not followed.

    Args:
        folder: The folder.
        limits: How much is allowed.
        nameless: Bytes that count beside what is found in the folder.
    """
    left, count, waiting = limits.disk_mb * MEGABYTE - nameless, limits.files, [folder]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                count -= 1
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        left -= entry.stat(follow_symlinks=False).st_blocks * BLOCK
                if left < 0 or count < 0:
                    return True
    return left < 0
