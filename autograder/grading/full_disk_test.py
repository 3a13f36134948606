"""A disk that is full at any write of a run: one sentence, nothing half-written, and the next run completes it."""

import errno
import os
import shutil
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import pytest

from autograder.errors import CourseError
from autograder.grading import writing
from autograder.grading.engine import grade_chapter
from autograder.grading.killed_test import SEED, class_that_handed_in_again, state
from autograder.grading.options import GradeOptions
from autograder.grading.pool import KernelPool
from autograder.grading.tiny_course import CHAPTER

pytestmark = pytest.mark.slow
OPTIONS = GradeOptions(seed=SEED, workers=1)
PLACES = 6  # of the run's writes, from the first to the last


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, warm_pool: KernelPool) -> Path:
    """Return a course that was graded once and has something new to grade."""
    return class_that_handed_in_again(tmp_path_factory.mktemp("full") / "course", warm_pool)


def written_until(last: int | None) -> tuple[Callable[[FileIO, bytes], None], list[str]]:
    """Return a `write` for which there is room until the one with this number, and the names of what it wrote."""
    real, names = writing.write, []

    def write(file: FileIO, content: bytes) -> None:
        if len(names) == last:
            file.write(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file.name))
        names.append(str(file.name))
        real(file, content)

    return write, names


@pytest.fixture(scope="module")
def undisturbed(
    course: Path, tmp_path_factory: pytest.TempPathFactory, warm_pool: KernelPool
) -> tuple[dict, list[str]]:
    """Return where a run with room ends, and what it wrote."""
    copy = tmp_path_factory.mktemp("undisturbed") / "course"
    shutil.copytree(course, copy)
    write, names = written_until(None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "write", write)
        grade_chapter(copy, CHAPTER, OPTIONS, pool=warm_pool)
    return state(copy), names


@pytest.mark.parametrize("place", range(PLACES))
def test_a_full_disk_costs_nothing_that_was_done(
    place: int,
    course: Path,
    undisturbed: tuple[dict, list[str]],
    tmp_path: Path,
    warm_pool: KernelPool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected, names = undisturbed
    copy = tmp_path / "course"
    shutil.copytree(course, copy)
    write, _ = written_until(place * (len(names) - 1) // (PLACES - 1))
    with monkeypatch.context() as patch, pytest.raises(CourseError, match=r"^The disk is full while [^\n]*$"):
        patch.setattr(writing, "write", write)
        grade_chapter(copy, CHAPTER, OPTIONS, pool=warm_pool)
    assert list(copy.rglob("*.part")) == []
    grade_chapter(copy, CHAPTER, OPTIONS, pool=warm_pool)
    assert state(copy) == expected
