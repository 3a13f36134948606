"""The autograder for Gradescope, unpacked and run as Gradescope runs it."""

import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from autograder.build import answered_notebook, model_answers
from autograder.cli import main
from autograder.collecting.gradescope import as_gradescope_reads, pack_autograder
from autograder.course_folder import CONFIG_NAME, find_course
from autograder.errors import CourseError
from autograder.grading.results import ExerciseResult, StudentResult

COURSE = find_course(Path(__file__).parent)
CHAPTER = "00_start_here"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay the archive out as Gradescope does."""
    root = tmp_path_factory.mktemp("gradescope")
    path = pack_autograder(COURSE, CHAPTER, root / "autograder.zip")
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            target = archive.extract(entry, root / "source")
            os.chmod(target, entry.external_attr >> 16)
    (root / "results").mkdir()
    return root


def run_on(root: Path, answers: dict[str, str] | None, name: str = f"{CHAPTER}.ipynb") -> dict:
    """Hand a notebook in and run the archive's own script; return results.json."""
    submission = root / "submission"
    submission.mkdir(exist_ok=True)
    for old in submission.iterdir():
        old.unlink()
    if answers is not None:
        (submission / name).write_text(json.dumps(answered_notebook(COURSE, CHAPTER, answers)), encoding="utf-8")
    environment = {**os.environ, "COURSE_AUTOGRADER": str(root), "COURSE_PYTHON": sys.executable}
    done = subprocess.run([str(root / "source" / "run_autograder")], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads((root / "results" / "results.json").read_text(encoding="utf-8"))


def test_the_scripts_can_be_run_and_read(root: Path) -> None:
    for name in ("setup.sh", "run_autograder"):
        assert (root / "source" / name).stat().st_mode & stat.S_IXUSR
        subprocess.run(["bash", "-n", str(root / "source" / name)], check=True)


@pytest.mark.slow
def test_a_right_submission_gets_all_points_with_a_test_for_each_exercise(root: Path) -> None:
    told = run_on(root, model_answers(COURSE, CHAPTER))
    assert told["score"] == 2.0
    assert [(one["name"], one["score"], one["max_score"]) for one in told["tests"]] == [("weighted_mean", 2.0, 2.0)]


@pytest.mark.slow
def test_a_misconception_is_told_in_the_tutors_words(root: Path) -> None:
    wrong = "def weighted_mean(values, weights):\n    return float(values.mean())"
    told = run_on(root, {"weighted_mean": wrong})
    assert told["score"] == 0.0
    assert "Where do the weights" in " ".join(told["tests"][0]["output"].split())


@pytest.mark.slow
def test_nothing_handed_in_is_said_in_a_sentence(root: Path) -> None:
    told = run_on(root, None)
    assert told["score"] == 0.0
    assert told["output"]


def test_a_written_answer_waits_and_a_repair_is_told() -> None:
    exercises = {"why": ExerciseResult(0.0, 2.0, status="needs_manual"), "f": ExerciseResult(1.0, 1.0)}
    told = as_gradescope_reads(StudentResult("needs_manual", ["A cell was put back."], [], exercises))
    assert told["tests"][0]["output"] == "A person reads this answer."
    assert "A cell was put back." in told["output"]


def test_a_chapter_without_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="needs the chapter's source"):
        pack_autograder(COURSE, "99_nothing", tmp_path / "a.zip")
    with pytest.raises(CourseError, match="There is no folder"):
        pack_autograder(COURSE, CHAPTER, tmp_path / "none" / "a.zip")


@pytest.mark.parametrize("command", [("export", CHAPTER, "--to", "gradescope-autograder"), ("release", CHAPTER)])
def test_a_course_without_its_code_is_one_sentence(command: tuple[str, ...], tmp_path: Path, capsys) -> None:
    course = tmp_path / "course"
    (course / "solutions").mkdir(parents=True)
    (course / "solutions" / f"{CHAPTER}.py").write_text("")
    (course / CONFIG_NAME).write_text("")
    with pytest.raises(SystemExit) as end:
        main((*command, "--out", str(tmp_path / "a.zip"), "--course", str(course)))
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert said.count("\n") == 1
    assert "has no pyproject.toml" in said
    assert [path.name for path in tmp_path.iterdir()] == ["course"]
