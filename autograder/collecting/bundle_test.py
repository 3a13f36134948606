"""A learner's bundle has all that a learner needs, and nothing that a learner should not see."""

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from autograder.build import model_answers
from autograder.cli import main
from autograder.collecting.bundle import TOP, pack_bundle
from autograder.course_folder import TEST_ROOMS, find_course
from autograder.errors import CourseError

COURSE = find_course(Path(__file__).parent)
CHAPTERS = ["00_start_here", "01_attention"]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pack two chapters, and unpack them elsewhere."""
    folder = tmp_path_factory.mktemp("bundle")
    number = pack_bundle(COURSE, CHAPTERS, folder / "week1.zip")
    with zipfile.ZipFile(folder / "week1.zip") as archive:
        assert len(archive.namelist()) == number
        archive.extractall(folder)
    return folder / TOP


def in_bundle(bundle: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `course` from the bundle's own code."""
    command = [sys.executable, "-m", "autograder.cli", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(bundle)}
    return subprocess.run(command, cwd=bundle, env=environment, capture_output=True, text=True)


def test_chapters_checks_library_and_set_up_are_there(bundle: Path) -> None:
    for name in ("README.md", "Makefile", "pyproject.toml", "constraints.txt", "LICENSE", "nbgrader_config.py"):
        assert (bundle / name).is_file()
    assert sorted(path.name for path in (bundle / "chapters").glob("[0-9]*")) == CHAPTERS
    assert (bundle / "course_lib" / "attention.py").is_file()
    assert (bundle / "autograder" / "exercises" / "attention" / "softmax.py").is_file()
    assert (bundle / "autograder" / "reports" / "templates" / "report.css").is_file()


def test_answers_tests_and_caches_are_not(bundle: Path) -> None:
    names = [path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()]
    assert not [name for name in names if name.startswith("solutions/") or name.endswith("_test.py")]
    assert not [name for name in names if "__pycache__" in name or "conftest" in name]
    assert not [name for name in names if {*name.split("/")} & {*TEST_ROOMS}]
    notebook = (bundle / "chapters/01_attention/01_attention.ipynb").read_text(encoding="utf-8")
    answer = model_answers(COURSE, "01_attention")["attention_scores"].strip().splitlines()[-1].strip()
    assert answer not in notebook


def test_the_packed_code_imports_nothing_that_was_left_out(bundle: Path) -> None:
    for path in bundle.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.ImportFrom)
                and node.module
                and node.module.split(".")[0] in ("autograder", "course_lib")
            ):
                place = bundle.joinpath(*node.module.split("."))
                assert place.with_suffix(".py").is_file() or place.is_dir(), f"{path}: {node.module}"


@pytest.mark.slow
def test_a_learners_commands_work_from_the_bundle(bundle: Path) -> None:
    progress = in_bundle(bundle, "progress", "1")
    assert progress.returncode == 0, progress.stderr
    assert "softmax" in progress.stdout
    reset = in_bundle(bundle, "reset", "softmax")
    assert "nothing was changed" in reset.stdout, reset.stderr
    answer = in_bundle(bundle, "answer", "softmax", "--yes")
    assert answer.returncode == 2
    assert "has no answers" in answer.stderr
    update = in_bundle(bundle, "update", "1")
    assert "up to date" in update.stdout, update.stderr


def test_two_bundles_of_one_course_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        pack_bundle(COURSE, ["00_start_here"], tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_a_bundle_needs_a_folder_and_a_chapter_that_is_there(tmp_path: Path, capsys) -> None:
    with pytest.raises(CourseError, match="There is no folder"):
        pack_bundle(COURSE, CHAPTERS, tmp_path / "none" / "a.zip")
    with pytest.raises(SystemExit) as end:
        main(("release", "99_nothing", "--out", str(tmp_path / "a.zip"), "--course", str(COURSE)))
    assert end.value.code == 2
    assert "There is no chapter" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
