"""One warm pool for all tests of the grading engine."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from autograder.grading.engine import grade_chapter
from autograder.grading.pool import KernelPool
from autograder.grading.results import ClassResult
from autograder.grading.sandbox import LANDLOCK, NAMESPACES, SandboxError


@pytest.fixture(scope="session")
def warm_pool() -> Iterator[KernelPool]:
    """Give a started pool with the strongest sandbox that works here."""
    pool = KernelPool()
    try:
        pool.start()
    except SandboxError as error:
        pytest.skip(f"kernel: no sandbox works here ({error})")
    yield pool
    pool.close()


@pytest.fixture(params=[NAMESPACES, LANDLOCK], scope="module")
def walled_pool(request: pytest.FixtureRequest, warm_pool: KernelPool) -> Iterator[KernelPool]:
    """Give the pool with each kind of sandbox in turn."""
    report = warm_pool.try_kind(request.param)
    if not report.works:
        pytest.skip(f"kernel: {request.param} does not work here ({report.reason})")
    before, warm_pool.kind = warm_pool.kind, request.param
    yield warm_pool
    warm_pool.kind = before


@pytest.fixture
def grade(warm_pool: KernelPool) -> Callable[..., ClassResult]:
    """Return `grade_chapter` with the pool that all tests share."""
    return partial(grade_chapter, pool=warm_pool)
