"""Grade many submissions at a time over one pool of kernels, and stop at once when that is asked for."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, TypeVar

from autograder.grading.pool import KernelPool
from autograder.grading.session import KernelSession

WAITING_PER_WORKER = 2  # submissions handed to a worker and not yet recorded
Job = TypeVar("Job")
Outcome = TypeVar("Outcome")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Kernels:
    """A pool's kernels, all of which can be ended at once."""

    def __init__(self, pool: KernelPool):
        """Give out kernels of a started pool."""
        self.pool, self.stopped = pool, False
        self._live: set[KernelSession] = set()
        self._lock = threading.Lock()

    @property
    def folder(self) -> str:
        """Return a folder for temporary files."""
        return self.pool.folder

    @contextlib.contextmanager
    def kernel(self, work: Any, *arguments: Any, **options: Any) -> Iterator[KernelSession]:
        """Give a fresh kernel."""
        with self.pool.kernel(work, *arguments, **options) as session:
            with self._lock:
                self._live.add(session)
                if self.stopped:
                    session.process.send_signal(signal.SIGKILL)
            try:
                yield session
            finally:
                with self._lock:
                    self._live.discard(session)

    def stop(self) -> None:
        """End every kernel, so that whoever waits for one goes on."""
        with self._lock:
            self.stopped = True
            for session in self._live:
                session.process.send_signal(signal.SIGKILL)


def in_parallel(
    work: Callable[[Job], Outcome], jobs: Iterable[Job], workers: int, stop: Callable[[], None]
) -> Iterator[tuple[Job, Outcome]]:
    """Yield each job with its outcome as they come; only a few are under way or waiting at a time.

    Args:
        work: Does one job; what it raises ends the run.
        jobs: What is to be done.
        workers: How many at a time.
        stop: Makes the jobs under way end soon, when the run ends early.
    """
    with ThreadPoolExecutor(workers, thread_name_prefix="grade") as executor:
        try:
            for job, future in through(partial(executor.submit, work), jobs, lambda: WAITING_PER_WORKER * workers):
                yield job, future.result()
        except BaseException:
            stop()
            executor.shutdown(cancel_futures=True)
            raise


def through(
    submit: Callable[[Job], Future[Outcome]],
    jobs: Iterable[Job],
    most: Callable[[], int],
    idle: Callable[[], None] | None = None,
    patience: float | None = None,
) -> Iterator[tuple[Job, Future[Outcome]]]:
    """Yield each job with its future when that is done.

    Args:
        submit: Hands one job to an executor.
        jobs: What is to be done; a job is taken when there is room for it.
        most: Tells how many may be under way or waiting at the moment.
        idle: Called when nothing was finished for a while; it may raise.
        patience: Seconds of this while.
    """
    waiting: dict[Future[Outcome], Job] = {}
    todo, more = iter(jobs), True
    while True:
        while more and len(waiting) < most():
            for job in todo:
                waiting[submit(job)] = job
                break
            else:
                more = False
        if not waiting:
            return
        done, _ = wait(waiting, patience, FIRST_COMPLETED)
        if not done and idle is not None:
            idle()
        for future in done:
            yield waiting.pop(future), future
