"""Run one function in several processes that talk to each other, and leave none behind.

Each process is a fresh Python that joins a gloo group over this machine's own loopback network. All of them start
inside one call and have ended when it returns, raises or is interrupted.
"""

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import torch.distributed

SECONDS = 120.0  # that a run may take before it is given up
PATIENCE = 0.05  # seconds between two looks at the processes
WORKER = "course_lib.training.distributed_worker"
LOOPBACK = {"linux": "lo", "darwin": "lo0"}
LAST_WORDS = 500  # characters of a process's own complaint that are repeated


class ProcessesFailed(RuntimeError):
    """A process ended early, raised, or took too long."""


def why_not() -> str | None:
    """Say in one sentence why processes cannot talk to each other here, or give None if they can."""
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        return "this PyTorch was built without gloo, through which processes on CPUs talk"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as error:
        return f"this system does not let a program open a connection to itself ({error.strerror})"
    return None


def on_processes(count: int, function: Callable[..., Any], *args: Any, seconds: float = SECONDS) -> list[Any] | None:
    """Call `function(link, *args)` in `count` processes; give their results in order of rank.

    Where processes cannot start, print one sentence and give None.

    Args:
        count: processes.
        function: stands in a module that can be imported. Its first argument is a
            `course_lib.training.distributed_worker.Link`.
        args: tensors and plain values, the same for every process.
        seconds: after which the run is given up.

    Raises:
        ValueError: `count` is below 1, or the function was defined in a notebook, where other processes do not find it.
        ProcessesFailed: a process raised, ended early or took too long.
    """
    if count < 1:
        raise ValueError(f"`count` must be at least 1, got {count}.")
    if function.__module__ == "__main__" or "<locals>" in function.__qualname__:
        raise ValueError(f"`function` must stand in a module, for other processes to find it; got {function.__name__}.")
    reason = why_not()
    if reason is not None:
        print(f"Not run: {reason}. The text goes on without this measurement.")
        return None
    call = pickle.dumps((function, args))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, contextlib.ExitStack() as stack:
        processes = []
        for rank in range(count):
            log = stack.enter_context(open(Path(folder) / f"log{rank}", "w+b"))
            processes.append(stack.enter_context(_process(rank, count, Path(folder) / "meeting", log)))
        return _gather(processes, call, time.monotonic() + seconds)


class _Started:
    """One process, the thread that feeds and hears it, and what came back."""

    def __init__(self, rank: int, popen: subprocess.Popen, log: IO[bytes]) -> None:
        self.rank, self.popen, self.log = rank, popen, log
        self.answer: tuple[bool, Any] | None = None
        self.thread: threading.Thread | None = None

    def talk(self, call: bytes) -> None:
        """Hand over the call and wait for the answer, beside the main thread."""
        self.thread = threading.Thread(target=self._talk, args=(call,), daemon=True)
        self.thread.start()

    def _talk(self, call: bytes) -> None:
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError, ValueError):
            self.popen.stdin.write(call)
            self.popen.stdin.flush()
            self.answer = pickle.load(self.popen.stdout)

    def is_silent(self) -> bool:
        """Tell whether the process is gone and has not answered."""
        gone = self.thread is not None and not self.thread.is_alive()
        return gone and self.answer is None

    def complaint(self) -> str:
        """Repeat the end of what the process wrote."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace").strip()[-LAST_WORDS:]


@contextlib.contextmanager
def _process(rank: int, count: int, meeting: Path, log: IO[bytes]) -> Iterator[_Started]:
    """Start one process, and see to it that it is gone afterwards."""
    command = [sys.executable, "-m", WORKER, str(rank), str(count), str(meeting)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if sys.platform in LOOPBACK:
        environment["GLOO_SOCKET_IFNAME"] = LOOPBACK[sys.platform]
    with _interrupts_held():
        popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment)
    started = _Started(rank, popen, log)
    try:
        yield started
    finally:
        popen.kill()
        popen.wait()
        if started.thread is not None:
            started.thread.join()
        for pipe in (popen.stdin, popen.stdout):
            if pipe is not None:
                pipe.close()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold back an interrupt while a process starts; the process inherits that, so only this one is interrupted."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _gather(processes: list[_Started], call: bytes, end: float) -> list[Any]:
    for process in processes:
        process.talk(call)
    while any(process.answer is None for process in processes):
        silent = next((process for process in processes if process.is_silent()), None)
        if silent is not None:
            raise ProcessesFailed(f"Process {silent.rank} ended without an answer. {silent.complaint()}".strip())
        if any(process.answer and not process.answer[0] for process in processes):
            time.sleep(PATIENCE)  # whoever waits for the failed one fails too, a moment later
            break
        if time.monotonic() > end:
            raise ProcessesFailed(f"{len(processes)} processes took too long and were stopped; try smaller sizes.")
        time.sleep(PATIENCE)
    failures = [(*process.answer[1], process.rank) for process in processes if process.answer and not process.answer[0]]
    if failures:
        _, text, rank = min(failures)
        raise ProcessesFailed(f"Process {rank} of {len(processes)} raised {text}")
    return [process.answer[1] for process in processes if process.answer is not None]
