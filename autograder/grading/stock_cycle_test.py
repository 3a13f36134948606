"""The demo as a whole, and stock nbgrader on the same submissions: the points must be equal."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.grading.demo_class import CLASS_SIZE
from autograder.grading.results import ClassResult, read_results

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
CHAPTER = "01_attention"
BIN = Path(sys.executable).parent
DAMAGED_OR_OVER_LIMITS = ("08-damaged-cells", "09-endless-loop")  # where stock nbgrader may differ


def run(*command: str, folder: Path) -> str:
    """Run a command, which must succeed; return what it printed."""
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the demo's folder, and what `course demo` said."""
    out = tmp_path_factory.mktemp("cycle") / "demo"
    said = run("course", "demo", "--out", str(out), CHAPTER, folder=ROOT)
    return out, said


@pytest.fixture(scope="module")
def graded(demo: tuple[Path, str]) -> ClassResult:
    """Return the demo's results."""
    return read_results(demo[0], CHAPTER)


@pytest.fixture(scope="module")
def stock_points(demo: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Return the points that stock nbgrader gives the submissions that it can grade, from its own export."""
    folder = tmp_path_factory.mktemp("stock") / "course"
    for part in ("submitted", "build"):
        shutil.copytree(demo[0] / part, folder / part)
    shutil.copy(demo[0] / "nbgrader_config.py", folder)
    shutil.rmtree(folder / "build" / "release")
    for student in DAMAGED_OR_OVER_LIMITS:
        shutil.rmtree(folder / "submitted" / student)
    for step in ("generate_assignment", "autograde", "generate_feedback"):
        run("nbgrader", step, CHAPTER, folder=folder)
    run("nbgrader", "export", folder=folder)
    released = Path("chapters", CHAPTER, f"{CHAPTER}.ipynb")
    assert (folder / released).read_bytes() == (demo[0] / released).read_bytes()
    with (folder / "grades.csv").open(newline="") as file:
        return {row["student_id"]: float(row["raw_score"]) for row in csv.DictReader(file)}


def test_the_demo_grades_every_kind_of_submission(graded: ClassResult) -> None:
    assert len(graded.students) == CLASS_SIZE
    assert {result.status for result in graded.students.values()} == {"graded", "needs_manual"}


def test_the_demo_names_its_files_and_the_next_commands(demo: tuple[Path, str]) -> None:
    out, said = demo
    for student in ("01-complete", "08-damaged-cells", "09-endless-loop"):
        assert student in said
        assert (out / "feedback" / student / CHAPTER / f"{CHAPTER}.html").is_file()
    assert f"course grade {CHAPTER} --course {out}" in said


def test_complete_and_unusual_answers_get_every_automatic_point(graded: ClassResult) -> None:
    complete = graded.students["01-complete"]
    written = [exercise for exercise in complete.exercises.values() if exercise.status == "needs_manual"]
    assert complete.points == complete.maximum - sum(exercise.maximum for exercise in written)
    assert graded.students["02-unusual-forms"].points == complete.points
    assert graded.students["04-untouched"].points == 0


@pytest.mark.parametrize(
    ("student", "count"), [("05-one-misconception", 1), ("06-two-misconceptions", 2), ("07-three-misconceptions", 3)]
)
def test_misconceptions_are_recognized_in_the_results(student: str, count: int, graded: ClassResult) -> None:
    exercises = graded.students[student].exercises.values()
    assert sum(exercise.misconception is not None for exercise in exercises) == count


def test_damage_and_a_loop_cost_only_what_they_touch(graded: ClassResult) -> None:
    complete = graded.students["01-complete"]
    for student in DAMAGED_OR_OVER_LIMITS:
        lost = {
            name
            for name, exercise in graded.students[student].exercises.items()
            if exercise.points < complete.exercises[name].points
        }
        assert lost == {"repaired_attention"}
    assert len(graded.students["08-damaged-cells"].repairs) == 3


def test_stock_nbgrader_gives_the_same_points(graded: ClassResult, stock_points: dict[str, float]) -> None:
    ours = {name: result.points for name, result in graded.students.items() if name not in DAMAGED_OR_OVER_LIMITS}
    assert stock_points == ours
