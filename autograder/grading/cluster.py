"""A Dask cluster as the place where submissions are graded: bytes go out, results come back, one writer stays here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future
from importlib.util import find_spec
from typing import Any

from autograder.errors import CourseError
from autograder.grading.elsewhere import Served, grade_there

SECONDS_TO_ANSWER = 5
SECONDS_OF_SILENCE = 30.0  # of a scheduler that has answered before, and may be busy
SECONDS_WITHOUT_WORKERS = 120.0  # a batch system may take as long to start one
SECONDS_BETWEEN_LOOKS = 2.0
SECONDS_TO_CLOSE = 2
RETRIES = 3  # of a submission whose worker has gone wrong; those that died are counted by the scheduler
WAITING_PER_THREAD = 2
TALKATIVE = ("distributed", "tornado", "asyncio", "bokeh")


class Cluster:
    """A connection to a scheduler."""

    def __init__(self, address: str, workers: int | None, log: logging.Logger):
        """Name the scheduler; entering connects.

        Args:
            address: The scheduler's address, as `tcp://HOST:8786`.
            workers: How many submissions may be there at a time; None for two for each of the workers' threads.
            log: Where the cluster's own words go.

        Raises:
            CourseError: The cluster's packages are not installed.
        """
        if find_spec("distributed") is None:
            raise CourseError('--cluster needs the package distributed: pip install -c constraints.txt -e ".[cluster]"')
        self.address, self.workers, self.log = address, workers, log
        self._stack = contextlib.ExitStack()
        self._client: Any = None
        self._alone_since: float | None = None
        self._silent = False

    def __enter__(self) -> Cluster:
        """Connect.

        Raises:
            CourseError: The scheduler does not answer.
        """
        from distributed import Client

        with contextlib.ExitStack() as stack:
            stack.enter_context(words_into(self.log))
            try:
                if not answers(self.address):  # a client that cannot connect does not end quietly
                    raise TimeoutError("no answer")
                self._client = Client(self.address, timeout=SECONDS_TO_ANSWER, set_as_default=False)
            except (OSError, ValueError, TypeError) as error:
                self.log.warning("%s", error)
                raise CourseError(
                    f"The scheduler {self.address} does not answer; start it as docs/clusters.md says, "
                    "or leave --cluster away to grade here."
                ) from None
            stack.callback(self._close)
            self._executor = self._client.get_executor(pure=False, retries=RETRIES)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Call back what is still under way, and disconnect."""
        self._stack.close()

    def _close(self) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone, and the run's end is not to be
            if self._client.status == "running" and not self._silent:
                self._executor.shutdown(wait=False)
        with contextlib.suppress(Exception):
            self._client.close(SECONDS_TO_CLOSE)

    def send(self, order: bytes, student: str, data: bytes, files: Mapping[str, bytes]) -> Future[Served]:
        """Have one submission graded.

        Raises:
            CourseError: The scheduler is gone.
        """
        try:
            return self._executor.submit(grade_there, order, student, data, dict(files))
        except Exception as error:
            raise self.lost() from error

    def served(self, future: Future[Served]) -> Served:
        """Return what came back.

        Raises:
            CourseError: Nothing can be graded there.
            Exception: What went wrong with this one submission.
        """
        try:
            return future.result()
        except CancelledError as error:
            raise self.lost() from error
        except ImportError as error:
            raise CourseError(
                f"The cluster's scheduler and workers need this course installed as here: {error}."
            ) from error

    def lost(self) -> CourseError:
        """Return the error for a scheduler that is gone."""
        return CourseError(
            f"The scheduler {self.address} does not answer any more; what was graded is kept, and the same command "
            "goes on from there."
        )

    def room(self) -> int:
        """Return how many submissions may be there at the moment: workers come and go."""
        return self.workers or WAITING_PER_THREAD * max(1, self._threads())

    def look(self) -> None:
        """See that there is somebody to work; call this while nothing is finished.

        Raises:
            CourseError: The scheduler is gone, or has had no worker for long.
        """
        if self._threads():
            self._alone_since = None
            return
        now = time.monotonic()
        self._alone_since = self._alone_since or now
        if now - self._alone_since >= SECONDS_WITHOUT_WORKERS:
            raise CourseError(
                f"The scheduler {self.address} has had no worker for {SECONDS_WITHOUT_WORKERS:.0f} seconds; start "
                "some as docs/clusters.md says, and run it again."
            )

    def _threads(self) -> int:
        try:  # as `nthreads()` does, which would wait for ever
            ask = self._client.scheduler.ncores
            return sum(self._client.sync(ask, workers=None, callback_timeout=SECONDS_OF_SILENCE).values())
        except Exception as error:
            self._silent = True
            raise self.lost() from error


def answers(address: str) -> bool:
    """Return whether a scheduler answers within its time; one that accepts a connection and then is silent does not."""
    from distributed.comm import connect
    from distributed.security import Security

    async def knock() -> None:
        link = await connect(address, timeout=SECONDS_TO_ANSWER, **Security().get_connection_args("client"))
        link.abort()
        answered.set()

    def try_it() -> None:
        with contextlib.suppress(OSError, ValueError, TypeError):
            asyncio.run(knock())
        done.set()

    answered, done = threading.Event(), threading.Event()
    threading.Thread(target=try_it, daemon=True).start()  # a daemon, for the attempt itself may wait for ever
    done.wait(SECONDS_TO_ANSWER + 1)
    return answered.is_set()


def explain(error: Exception) -> str | None:
    """Return in a sentence what happened to a submission on its workers, if it is about them."""
    if type(error).__name__ == "KilledWorker":
        deaths = getattr(error, "allowed_failures", 0) + 1
        return f"{deaths} of the cluster's workers ended one after the other while they graded this notebook."
    return None


@contextlib.contextmanager
def words_into(log: logging.Logger) -> Iterator[None]:
    """Send what Dask says to the run's log instead of the terminal."""
    before: list[tuple[logging.Logger, list[Any], bool]] = []
    for name in TALKATIVE:
        logger = logging.getLogger(name)
        before.append((logger, logger.handlers[:], logger.propagate))
        logger.handlers[:] = log.handlers
        logger.propagate = False
    try:
        yield
    finally:
        for logger, handlers, propagate in before:
            logger.handlers[:], logger.propagate = handlers, propagate
