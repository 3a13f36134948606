"""Grade one submission on a machine that has this package and nothing of the course: all that is needed arrives.

A scheduler imports this module too, so it loads nothing heavy before a worker begins to work.
"""

from __future__ import annotations

import atexit
import json
import socket
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from autograder.errors import CourseError

if TYPE_CHECKING:
    from autograder.grading.kit import ChapterKit
    from autograder.grading.limits import Limits
    from autograder.grading.pool import KernelPool
    from autograder.grading.step import Graded

_lock = threading.Lock()
_pools: dict[str, KernelPool] = {}


@dataclass(frozen=True)
class Order:
    """What all submissions of a run share."""

    kit: ChapterKit
    secret: bytes
    cell_seconds: float
    limits: Limits
    sandbox: str
    environment: dict[str, str]


@dataclass(frozen=True)
class Served:
    """What came back from a worker.

    Args:
        graded: The submission's result.
        host: The worker's name.
        sandbox: The walls that stood around the notebook.
        warning: What they do not stop; empty for the full sandbox.
    """

    graded: Graded
    host: str = ""
    sandbox: str = ""
    warning: str = ""


def packed(order: Order) -> bytes:
    """Return the order as bytes."""
    fields = {
        "kit": asdict(order.kit),
        "secret": order.secret.hex(),
        "cell_seconds": order.cell_seconds,
        "limits": asdict(order.limits),
        "sandbox": order.sandbox,
        "environment": order.environment,
    }
    return json.dumps(fields).encode()


@lru_cache(maxsize=4)
def unpacked(order: bytes) -> Order:
    """Return the order that the bytes hold; a worker keeps it for the run's other submissions."""
    from autograder.grading.kit import ChapterKit, CheckCall
    from autograder.grading.limits import Limits

    fields: dict[str, Any] = json.loads(order)
    kit = fields["kit"]
    calls = {name: CheckCall(**call) for name, call in kit.pop("calls").items()}
    return Order(
        ChapterKit(**kit, calls=calls),
        bytes.fromhex(fields["secret"]),
        fields["cell_seconds"],
        Limits(**fields["limits"]),
        fields["sandbox"],
        fields["environment"],
    )


def grade_there(order: bytes, student: str, data: bytes, files: Mapping[str, bytes]) -> Served:
    """Grade one submission; the result is the same as at home.

    Args:
        order: What all submissions of the run share, packed.
        student: Whose submission it is.
        data: The submitted notebook.
        files: What was handed in beside it.

    Raises:
        CourseError: This worker cannot grade: another environment, or no sandbox.
    """
    from autograder.grading.judged import JudgeEndedError
    from autograder.grading.running import Terms
    from autograder.grading.sandbox import SandboxError
    from autograder.grading.step import grade_submission

    given = unpacked(order)
    host = socket.gethostname()
    compare_environments(host, given.environment)
    terms = Terms(student, given.secret, given.cell_seconds, given.limits)
    try:
        pool = warm_pool(given.sandbox)
        try:
            graded = grade_submission(data, given.kit, pool, terms, files)
        except (SandboxError, FileNotFoundError, JudgeEndedError):  # a worker outlives a run, its processes perhaps not
            drop_pool(given.sandbox, pool)
            pool = warm_pool(given.sandbox)
            graded = grade_submission(data, given.kit, pool, terms, files)
    except SandboxError as error:
        raise SandboxError(f"The worker {host} cannot grade: {error}") from None
    return Served(graded, host, pool.kind, pool.warning)


def compare_environments(host: str, wanted: Mapping[str, str]) -> None:
    """Refuse to grade where a grade could be another one than at home.

    Raises:
        CourseError: Python, a library or the course's own code differs.
    """
    from autograder.grading.keys import environment

    here = environment()
    other = [f"{name} ({here.get(name)}, not {value})" for name, value in wanted.items() if here.get(name) != value]
    if other:
        raise CourseError(f"The worker {host} differs from here in {', '.join(other)}; install the same on both.")


def warm_pool(sandbox: str) -> KernelPool:
    """Give this worker's pool of warm kernels, started on first use and ended with the process."""
    from autograder.grading.pool import KernelPool

    with _lock:
        if sandbox not in _pools:
            pool = KernelPool(sandbox)
            pool.start()
            _pools[sandbox] = pool
        return _pools[sandbox]


def drop_pool(sandbox: str, pool: KernelPool) -> None:
    """Forget a pool that gives no kernel any more, unless another thread did so already."""
    with _lock:
        if _pools.get(sandbox) is pool:
            del _pools[sandbox]
    pool.close()


@atexit.register
def close_pools() -> None:
    """End what this worker has started."""
    with _lock:
        while _pools:
            _pools.popitem()[1].close()
