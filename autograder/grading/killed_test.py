"""A run that is killed at any moment, and a second run, end where an undisturbed run would."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.build import answered_notebook
from autograder.course_folder import source_path
from autograder.errors import CourseError
from autograder.grading import chapter_run
from autograder.grading.engine import grade_chapter
from autograder.grading.forked import readable
from autograder.grading.options import GradeOptions
from autograder.grading.pool import KernelPool
from autograder.grading.results import read_results
from autograder.grading.session import Execution, KernelSession
from autograder.testing.tiny_course import CHAPTER, RIGHT, make_tiny_course

pytestmark = pytest.mark.slow
STUDENTS = ("ada", "bea", "cem", "dov")
SEED = 5
RANDOM_KILLS = 12
CELLS_BEFORE_THE_KILL = 3
PATIENCE = 60.0
QUERY = (
    "SELECT s.student_id, s.timestamp, b.name, g.auto_score, g.manual_score, g.needs_manual_grade FROM grade g "
    "JOIN base_cell b ON b.id = g.cell_id JOIN submitted_notebook n ON n.id = g.notebook_id "
    "JOIN submitted_assignment s ON s.id = n.assignment_id ORDER BY s.student_id, b.name"
)
GRADER = """
import os, signal, sys
from pathlib import Path
from autograder.grading import chapter_run, engine, ledger, files, gradebook
from autograder.grading.forked import readable
from autograder.grading.options import GradeOptions
where, count = sys.argv[2], int(sys.argv[3])

def deadly(holder, name, when):
    real = getattr(holder, name)
    calls = []
    def call(*arguments, **options):
        calls.append(1)
        if len(calls) == count and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **options)
        if len(calls) == count and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(holder, name, call)

holders = {
    "note": (gradebook.GradebookWriter, "_note"),
    "commit": (gradebook.GradebookWriter, "record"),
    "graded": (engine, "write_graded"),
    "ledger": (ledger.Ledger, "record"),
    "results": (ledger, "write_results"),
    "register": (chapter_run.StockCourse, "register"),
    "feedback": (chapter_run.StockCourse, "feedback"),
    "forget": (engine, "forget_graded"),
}
chapter_run.environment_key = lambda: "the same"
name, when = where.split("-")
deadly(*holders[name], when)
engine.grade_chapter(Path(sys.argv[1]), "01_tiny", GradeOptions(seed=5, workers=2))
"""


KILLERS = """
import itertools, json, os, signal, sys, traceback
from pathlib import Path
from autograder.grading import chapter_run, engine
from autograder.grading.forked import readable
from autograder.grading.options import GradeOptions
from autograder.grading.pool import KernelPool

chapter_run.environment_key = lambda: "the same"
OURS = ("autograder/grading/", "sqlalchemy/orm/session", "sqlalchemy/engine/default")

def grade(course, moment):
    count = 0

    def look(frame, event, argument):
        nonlocal count
        if any(part in frame.f_code.co_filename for part in OURS):
            count += 1
            if count == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(look)  # in this thread alone, which is the only one that writes
    engine.grade_chapter(Path(course), "01_tiny", GradeOptions(seed=5, workers=2), pool=pool)
    sys.setprofile(None)
    return count

with KernelPool() as pool:
    print(json.dumps("ready"), flush=True)
    for number, line in enumerate(sys.stdin, 1):
        course, moment = json.loads(line)
        pid = os.fork()
        if pid == 0:
            pool._numbers = itertools.count(1000 * number)
            code = 1
            try:
                print(json.dumps(grade(course, moment)), flush=True)
                code = 0
            except BaseException:
                traceback.print_exc()
            os._exit(code)
        _, status = os.waitpid(pid, 0)
        if status:
            print(json.dumps(-status), flush=True)
"""


class Killers:
    """A process that grades in forks of itself, each of which kills itself at a given moment."""

    def __enter__(self) -> Killers:
        """Start it."""
        command = [sys.executable, "-c", KILLERS]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.answer() == "ready"
        return self

    def answer(self) -> Any:
        """Read a line."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def run(self, course: Path, moment: int) -> int:
        """Grade until a moment, counted in steps of the engine; return how many there were, or minus the signal."""
        assert self.process.stdin is not None
        print(json.dumps([str(course), moment]), file=self.process.stdin, flush=True)
        return self.answer()

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.process.communicate()


def state(course: Path) -> dict:
    """Return all that a run leaves: grades, results without seconds, graded notebooks and pages."""
    with contextlib.closing(sqlite3.connect(course / "gradebook.db")) as database:
        grades = database.execute(QUERY).fetchall()
    results = asdict(read_results(course, CHAPTER))
    for student in results["students"].values():
        for exercise in student["exercises"].values():
            exercise["seconds"] = None
    graded = {path.parent.parent.name: path.read_bytes() for path in course.glob("autograded/*/*/*.ipynb")}
    pages = sorted(path.parent.parent.name for path in course.glob("feedback/*/*/*.html"))
    left = sorted(path.name for path in course.rglob("*.part"))
    return {"grades": grades, "results": results, "graded": graded, "pages": pages, "left": left}


@pytest.fixture(scope="module", autouse=True)
def same_environment() -> Iterator[None]:
    """Let both runs of a test see the same code, also while somebody edits it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chapter_run, "environment_key", lambda: "the same")
        yield


def class_that_handed_in_again(course: Path, warm_pool: KernelPool) -> Path:
    """Make a course that was graded once, and into which two students handed in again, one of them rubbish."""
    make_tiny_course(course)
    (course / "build").mkdir(exist_ok=True)
    for student in STUDENTS:
        path = course / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(answered_notebook(course, CHAPTER, RIGHT if student != "cem" else {}), path)
    grade_chapter(course, CHAPTER, GradeOptions(seed=SEED), pool=warm_pool)
    source_path(course, CHAPTER).unlink()  # from here on the instructor's notebook is what was built
    again = course / "submitted"
    right = again / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    shutil.copy(right, again / "cem" / CHAPTER / right.name)
    (again / "dov" / CHAPTER / f"{CHAPTER}.ipynb").write_bytes(b"rubbish")
    return course


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, warm_pool: KernelPool) -> Path:
    """Return a course with something to grade again."""
    return class_that_handed_in_again(tmp_path_factory.mktemp("killed") / "course", warm_pool)


@pytest.fixture(scope="module")
def undisturbed(course: Path, tmp_path_factory: pytest.TempPathFactory, warm_pool: KernelPool) -> dict:
    """Return where an undisturbed run ends."""
    copy = tmp_path_factory.mktemp("undisturbed") / "course"
    shutil.copytree(course, copy)
    grade_chapter(copy, CHAPTER, GradeOptions(seed=SEED), pool=warm_pool)
    return state(copy)


def test_a_second_run_ends_where_an_undisturbed_one_does_whatever_the_moment(
    course: Path, undisturbed: dict, tmp_path: Path, warm_pool: KernelPool
) -> None:
    draw = random.Random(SEED)
    killed = 0
    with Killers() as killers:
        shutil.copytree(course, tmp_path / "whole")
        moments = killers.run(tmp_path / "whole", 0)
        assert state(tmp_path / "whole") == undisturbed
        for number in range(RANDOM_KILLS):
            copy = tmp_path / str(number)
            shutil.copytree(course, copy)
            moment = draw.randrange(moments)
            ended = killers.run(copy, moment + 1)
            assert ended == -signal.SIGKILL or ended > 0  # at times a run has fewer steps than the first one
            killed += ended < 0
            grade_chapter(copy, CHAPTER, GradeOptions(seed=SEED), pool=warm_pool)
            assert state(copy) == undisturbed, f"killed at moment {moment} of {moments}"
    assert killed > 0


@pytest.mark.parametrize(
    "moment",
    ["note-before 1", "commit-after 1", "graded-after 1", "ledger-after 1", "forget-before 1", "results-before 2"],
)
def test_a_second_run_ends_where_an_undisturbed_one_does(
    moment: str, course: Path, undisturbed: dict, tmp_path: Path, warm_pool: KernelPool
) -> None:
    copy = tmp_path / "course"
    shutil.copytree(course, copy)
    command = [sys.executable, "-c", GRADER, str(copy), *moment.split()]
    ended = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    grade_chapter(copy, CHAPTER, GradeOptions(seed=SEED), pool=warm_pool)
    assert state(copy) == undisturbed


def test_a_journal_that_was_cut_short_is_read_up_to_there(
    course: Path, undisturbed: dict, tmp_path: Path, warm_pool: KernelPool
) -> None:
    copy = tmp_path / "course"
    shutil.copytree(course, copy)
    journal = copy / "results" / f".{CHAPTER}.journal.jsonl"
    journal.write_text(
        json.dumps({"student": "cem", "key": "old", "result": asdict(read_results(copy, CHAPTER).students["ada"])})
        + '\n{"student": "ada", "ke'
    )
    grade_chapter(copy, CHAPTER, GradeOptions(seed=SEED), pool=warm_pool)
    assert state(copy) == undisturbed


def test_a_zygote_that_is_killed_is_nobodys_fault_and_the_next_run_completes_it(
    course: Path, undisturbed: dict, tmp_path: Path, warm_pool: KernelPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "course"
    shutil.copytree(course, copy)
    real, run = KernelSession.execute, []

    def execute(kernel: KernelSession, *arguments: Any) -> Execution:
        run.append(arguments)
        if len(run) == CELLS_BEFORE_THE_KILL:
            os.kill(kernel.pool._running().pid, signal.SIGKILL)
            assert readable(kernel.process.connection, PATIENCE)  # its keeper has followed it
        return real(kernel, *arguments)

    with KernelPool(warm_pool.kind) as doomed, monkeypatch.context() as patch:
        patch.setattr(KernelSession, "execute", execute)
        with pytest.raises(CourseError, match="start the run again"):
            grade_chapter(copy, CHAPTER, GradeOptions(seed=SEED, workers=1), pool=doomed)
    assert len(run) >= CELLS_BEFORE_THE_KILL
    grade_chapter(copy, CHAPTER, GradeOptions(seed=SEED), pool=warm_pool)
    assert state(copy) == undisturbed
