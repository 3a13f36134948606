"""A class graded by a Dask cluster's workers: the same grades as at home, though workers and schedulers end."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from autograder.build import answered_notebook
from autograder.cli import main
from autograder.errors import CourseError
from autograder.grading import cluster, on_cluster
from autograder.grading.engine import Tally, grade_chapter
from autograder.grading.options import GradeOptions
from autograder.grading.pool import KernelPool
from autograder.grading.results import ClassResult, read_results
from autograder.testing.tiny_course import CHAPTER, RIGHT, make_tiny_course

pytestmark = pytest.mark.slow
DASK = Path(sys.executable).parent / "dask"
SECONDS_TO_START = 120.0
SECONDS_BETWEEN_LOOKS = 0.05
DEADLY = "import os\n\n\ndef double(x):\n    os._exit(1)"
CLASS = {"ada": RIGHT, "bea": {}, "cem": RIGHT | {"double": DEADLY}, "dov": RIGHT, "eli": None, "fay": RIGHT}
SEED = 3


class LocalDask:
    """A scheduler and workers, each a process of its own in a folder that has nothing of any course."""

    def __init__(self, folder: Path):
        """Start the scheduler."""
        self.folder, self.processes = folder, []
        self.address_file = folder / "scheduler.json"
        self.scheduler = self.start("scheduler", "--host", "127.0.0.1", "--port", "0")

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start one process."""
        command = [DASK, *arguments, "--no-dashboard", "--scheduler-file", self.address_file]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"}
            )
        self.processes.append(process)
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        """Start a worker of one thread."""
        return self.start("worker", "--nthreads", "1", "--no-nanny", "--local-directory", str(self.folder))

    @property
    def address(self) -> str:
        """Return the scheduler's address, when it has one."""
        deadline = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError):
                return json.loads(self.address_file.read_text())["address"]
            assert self.scheduler.poll() is None, (self.folder / "log").read_text()
            time.sleep(SECONDS_BETWEEN_LOOKS)
        raise TimeoutError("the scheduler has no address")

    def close(self) -> None:
        """End all."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[LocalDask]:
    """Give a scheduler."""
    (tmp_path / "dask").mkdir()
    found = LocalDask(tmp_path / "dask")
    yield found
    found.close()


@pytest.fixture(autouse=True)
def same_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers grade with the code that they find, also while somebody edits it."""
    monkeypatch.setattr(on_cluster, "environment", dict)


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Return a course with a small class."""
    course = make_tiny_course(tmp_path / "course", 8)
    for student, answers in CLASS.items():
        path = course / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb"
        path.parent.mkdir(parents=True)
        if answers is None:
            path.write_bytes(b"rubbish")
        else:
            nbformat.write(answered_notebook(course, CHAPTER, answers), path)
    return course


def without_seconds(result: ClassResult) -> ClassResult:
    """Return the class without how long anything took."""
    for student in result.students.values():
        for exercise in student.exercises.values():
            exercise.seconds = None
    return result


def test_a_cluster_gives_the_same_as_this_machine_though_a_worker_is_killed(
    course: Path, dask: LocalDask, warm_pool: KernelPool
) -> None:
    doomed = dask.worker()
    dask.worker()
    options = GradeOptions(seed=SEED, cluster=dask.address, feedback=False)

    def kill_one(tally: Tally) -> None:
        if tally.done == 2:
            doomed.send_signal(signal.SIGKILL)

    there = without_seconds(grade_chapter(course, CHAPTER, options, kill_one))
    assert doomed.wait() == -signal.SIGKILL
    notebooks = {path.parts[-3]: path.read_text() for path in course.glob("autograded/*/*/*.ipynb")}
    here = without_seconds(
        grade_chapter(course, CHAPTER, GradeOptions(seed=SEED, force=True, feedback=False), pool=warm_pool)
    )
    assert there == here
    assert [name for name, result in here.students.items() if result.status == "failed"] == ["eli"]
    assert notebooks == {path.parts[-3]: path.read_text() for path in course.glob("autograded/*/*/*.ipynb")}
    events = [json.loads(line) for line in (course / "results" / f"{CHAPTER}.log.jsonl").read_text().splitlines()]
    assert {event["host"] for event in events if "host" in event} == {socket.gethostname()}


def test_a_scheduler_that_ends_stops_the_run_in_a_sentence_and_what_was_graded_is_kept(
    course: Path, dask: LocalDask, warm_pool: KernelPool
) -> None:
    dask.worker()

    def kill_it(tally: Tally) -> None:
        if tally.done == 2:
            dask.scheduler.kill()

    options = GradeOptions(seed=SEED, cluster=dask.address, workers=2, feedback=False)
    with pytest.raises(CourseError, match="does not answer any more; what was graded is kept"):
        grade_chapter(course, CHAPTER, options, kill_it)
    done = read_results(course, CHAPTER).students
    assert 2 <= len(done) < len(CLASS)
    again: list[int] = []
    result = grade_chapter(
        course, CHAPTER, GradeOptions(seed=SEED, feedback=False), lambda tally: again.append(tally.total), warm_pool
    )
    assert again[0] == len(CLASS) - sum(student.status != "failed" for student in done.values())
    assert len(result.students) == len(CLASS)


def test_a_scheduler_that_falls_silent_stops_the_run_in_a_sentence_and_what_was_graded_is_kept(
    course: Path, dask: LocalDask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "SECONDS_OF_SILENCE", 1)
    dask.worker()

    def stop_it(tally: Tally) -> None:
        if tally.done == 2:
            dask.scheduler.send_signal(signal.SIGSTOP)

    options = GradeOptions(seed=SEED, cluster=dask.address, workers=1, feedback=False)
    with pytest.raises(CourseError, match="does not answer any more; what was graded is kept"):
        grade_chapter(course, CHAPTER, options, stop_it)
    assert 2 <= len(read_results(course, CHAPTER).students) < len(CLASS)


def test_a_scheduler_without_workers_is_told(course: Path, dask: LocalDask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "SECONDS_WITHOUT_WORKERS", 0)
    with pytest.raises(CourseError, match="has had no worker for 0 seconds"):
        grade_chapter(course, CHAPTER, GradeOptions(cluster=dask.address))


def test_a_scheduler_that_does_not_answer_is_told_at_once(
    course: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for address in (f"tcp://127.0.0.1:{port}", "tcp://127.0.0.1:1", "nonsense://x", "no address"):
            with pytest.raises(SystemExit) as ended:
                main(["grade", CHAPTER, "--course", str(course), "--cluster", address])
            assert ended.value.code == 2
            lines = capfd.readouterr().err.strip().splitlines()
            assert [line for line in lines if line.strip()] == [
                f"The scheduler {address} does not answer; start it as docs/clusters.md says, or leave --cluster away "
                "to grade here."
            ]
    assert read_results(course, CHAPTER).students == {}
