"""A pool of warm one-shot kernels and of judges, for one grading run."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from autograder.grading.forked import ForkedProcess
from autograder.grading.judge_process import JudgeProcess
from autograder.grading.limits import Limits
from autograder.grading.sandbox import AUTO, CHOICES, KINDS, NONE, NOT_STOPPED, Room, SandboxError
from autograder.grading.session import KernelSession
from autograder.grading.warm_process import WarmProcess

SANDBOX_VARIABLE = "COURSE_SANDBOX"
PROBE_LIMITS = Limits(seconds=30)
DEFAULT_LIMITS = Limits()
ENDED = "The warm process has ended; start the run again."

log = logging.getLogger("course.kernels")


@dataclass(frozen=True)
class Report:
    """What a probe of one kind of sandbox found.

    Args:
        kind: `namespaces` or `landlock`.
        works: Whether every wall stands.
        reason: Why not, in a sentence; empty when it works.
        walls: Each wall by name, and whether it held when it was tried.
    """

    kind: str
    works: bool
    reason: str
    walls: dict[str, bool]


class KernelPool:
    """Forks confined kernels from one warm process; may be used from several threads."""

    def __init__(self, choice: str = AUTO, warm: bool = True, process: WarmProcess | None = None):
        """Prepare a pool; nothing is started before `start`, or the first use in a `with` statement.

        Args:
            choice: `auto` for the strongest sandbox that works here, or `namespaces`, `landlock`, `none`.
            warm: Load the libraries ahead; a pool that only probes does without.
            process: A warm process that was started earlier, to save time; the pool ends it.

        Raises:
            SandboxError: There is no such choice.
        """
        if choice not in CHOICES:
            raise SandboxError(f"The sandbox must be one of {', '.join(CHOICES)}, not {choice!r}.")
        self.choice, self.warm = choice, warm
        self.kind = NONE
        self.reports: list[Report] = []
        self._numbers = itertools.count(1)
        self._judges: dict[threading.Thread, JudgeProcess] = {}
        self._process = process
        self._started = False

    @property
    def folder(self) -> str:
        """Return the run's private folder, which is gone after the run."""
        return self._running().folder

    @property
    def warning(self) -> str:
        """Say what the chosen sandbox does not stop; empty for the full one."""
        return NOT_STOPPED[self.kind]

    def __enter__(self) -> KernelPool:
        """Start, unless it was started."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End every process of the pool."""
        self.close()

    def start(self) -> None:
        """Start the zygote and choose the sandbox.

        Raises:
            SandboxError: No sandbox works here and `none` was not asked for, or the asked one does not work.
        """
        if self._started:
            return
        self._started = True
        try:
            if self._process is None:
                self._process = WarmProcess(self.warm)
            self._process.wait_ready()
            self.kind = self._choose()
        except BaseException:
            self.close()
            raise
        if self.warning:
            log.warning("%s", self.warning)

    def _choose(self) -> str:
        """Try the kinds of sandbox from the strongest on."""
        if self.choice == NONE:
            return NONE
        for kind in KINDS if self.choice == AUTO else (self.choice,):
            self.reports.append(self.try_kind(kind))
            if self.reports[-1].works:
                return kind
        reasons = "; ".join(f"{report.kind}: {report.reason}" for report in self.reports)
        raise SandboxError(
            f"No sandbox works here ({reasons}). Grading runs students' code, so it stops; "
            "`--sandbox none` runs it unprotected."
        )

    def try_kind(self, kind: str) -> Report:
        """Confine a process in one kind of sandbox and try each wall from inside."""
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix="secret") as secret:
            secret.write(b"not for notebooks")
            secret.flush()
            folder = self.new_folder()
            try:
                process = self.fork("probe", Room(kind, folder), PROBE_LIMITS, secret=secret.name)
                walls = process.wait_ready()["walls"]
                process.close()
            except SandboxError as error:
                return Report(kind, False, str(error).removeprefix("A confined process could not be started: "), {})
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        fallen = [name for name, held in walls.items() if not held]
        return Report(kind, not fallen, f"does not hold: {', '.join(fallen)}" if fallen else "", walls)

    def new_folder(self) -> str:
        """Make a private folder for one process; its path is short, as a socket's path must be."""
        folder = os.path.join(self.folder, str(next(self._numbers)))
        os.mkdir(folder, 0o700)
        return folder

    def fork(
        self,
        role: str,
        room: Room,
        limits: Limits,
        descriptors: tuple[int, ...] = (),
        seed: int = 0,
        **request: Any,
    ) -> ForkedProcess:
        """Ask the zygote for a new process; it is not ready yet when this returns."""
        process = self._running()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        message = {"role": role, "room": asdict(room), "limits": asdict(limits), "seed": seed, **request}
        try:
            process.send(message, [theirs.fileno(), *descriptors])
        except OSError:
            ours.close()
            raise SandboxError(ENDED) from None
        finally:
            theirs.close()
        return ForkedProcess(ours)

    @contextlib.contextmanager
    def kernel(
        self,
        work: str | os.PathLike[str],
        limits: Limits = DEFAULT_LIMITS,
        seed: int = 0,
        env: dict[str, str] | None = None,
    ) -> Iterator[KernelSession]:
        """Give a fresh kernel that nobody has used and nobody will use again.

        Args:
            work: The notebook's folder: all that it may change.
            limits: What it may use.
            seed: Where its random generators start.
            env: More environment variables, such as `NBGRADER_EXECUTION`.

        Raises:
            SandboxError: It could not be started.
        """
        folder = self.new_folder()
        session = None
        try:
            session = KernelSession(self, Room(self.kind, folder, os.path.realpath(work)), limits, seed, env or {})
            yield session
        finally:
            if session is not None:
                session.close()
            shutil.rmtree(folder, ignore_errors=True)

    def judge(self) -> JudgeProcess:
        """Give this thread's judge, a process that never runs a student's code; a new one if the last has ended."""
        own = threading.current_thread()
        judge = self._judges.get(own)
        if judge is None or not judge.alive:
            for thread in list(self._judges):
                if thread is own or not thread.is_alive():
                    self._judges.pop(thread).close()
            judge = self._judges[own] = JudgeProcess(self, Room(self.kind, self.new_folder()))
        return judge

    def close(self) -> None:
        """End the zygote and with it every process of the pool."""
        while self._judges:
            self._judges.popitem()[1].close()
        if self._process is not None:
            self._process.close()
            self._process = None

    def _running(self) -> WarmProcess:
        if self._process is None:
            raise SandboxError(ENDED)
        return self._process


def probe() -> list[Report]:
    """Try every kind of sandbox on this machine."""
    reports = []
    for kind in KINDS:
        pool = KernelPool(kind, warm=False)
        try:
            with pool:
                pass
        except SandboxError as error:
            pool.reports = pool.reports or [Report(kind, False, str(error), {})]
        reports += pool.reports
    return reports
