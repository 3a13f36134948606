"""One run at a time in a course's folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from autograder.errors import CourseError

LOCK = Path("results") / ".grading.lock"


@contextmanager
def one_run_at_a_time(course: Path) -> Iterator[None]:
    """Hold the course's lock; the system takes it from a run that ends in whatever way.

    Raises:
        CourseError: Another run holds it.
    """
    path = course / LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise CourseError(f"Another run is grading in {course}; wait until it has ended.") from None
    try:
        yield
    finally:
        lock.release()
