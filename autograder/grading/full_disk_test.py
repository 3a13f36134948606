"""A disk that is full at any write of a run: one sentence, nothing half-written, and the next run completes it."""

import errno
import json
import os
import shutil
import subprocess
import sys
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
from autograder.testing.tiny_course import CHAPTER

pytestmark = pytest.mark.slow
OPTIONS = GradeOptions(seed=SEED, workers=1)
PLACES = 6  # of the run's writes, from the first to the last
ROOMS = (0, 4, 8, 12)  # kilobytes that are left on a small file system; a whole run takes some more
SMALL_FILE_SYSTEM = """
import json, os, shutil, sys
from pathlib import Path
from autograder.errors import CourseError
from autograder.grading.engine import grade_chapter
from autograder.grading.full_disk_test import OPTIONS
from autograder.grading.linux import mount
from autograder.grading.pool import KernelPool
from autograder.testing.tiny_course import CHAPTER

course, place, rooms = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
MS_REMOUNT, PLENTY = 0x20, "size=64m"
found = []
with KernelPool() as pool:
    mount("tmpfs", str(place), "tmpfs", options=PLENTY)
    for room in rooms:
        copy = place / str(room)
        shutil.copytree(course, copy)
        disk = os.statvfs(place)
        used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize // 1024
        mount("tmpfs", str(place), "tmpfs", MS_REMOUNT, f"size={used + room}k")
        try:
            grade_chapter(copy, CHAPTER, OPTIONS, pool=pool)
            said = ""
        except CourseError as error:
            said = str(error)
        left = [str(path) for path in copy.rglob("*") if path.suffix == ".part" or "-journal" in path.name]
        mount("tmpfs", str(place), "tmpfs", MS_REMOUNT, PLENTY)
        grade_chapter(copy, CHAPTER, OPTIONS, pool=pool)
        shutil.copytree(copy, course.parent / f"room {room}")
        found.append([said, left])
print(json.dumps(found))
"""


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


def test_a_small_file_system_that_is_really_full_is_told_and_costs_nothing(
    course: Path, undisturbed: tuple[dict, list[str]], tmp_path: Path
) -> None:
    shutil.copytree(course, tmp_path / "course")
    (tmp_path / "disk").mkdir()
    script = [sys.executable, "-c", SMALL_FILE_SYSTEM, str(tmp_path / "course"), str(tmp_path / "disk")]
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", *script, json.dumps(ROOMS)], capture_output=True, text=True
    )
    if "unshare" in done.stderr:
        pytest.skip(f"kernel: no private mounts here ({done.stderr.strip()})")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert all("make room and run it again" in said for said, _ in found[:2])
    assert [left for _, left in found] == [[]] * len(ROOMS)
    assert [state(tmp_path / f"room {room}") == undisturbed[0] for room in ROOMS] == [True] * len(ROOMS)
