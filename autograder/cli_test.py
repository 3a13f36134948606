"""The command line as a whole: help, exit codes, and errors in one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from autograder.cli import COMMANDS, main
from autograder.errors import CourseError
from autograder.testing.tiny_course import CHAPTER, make_tiny_course

HEAVY = ("torch", "nbgrader", "nbformat", "jupytext", "matplotlib")


def exit_code(*arguments: str) -> int:
    """Run `course` in this process; return its exit code."""
    try:
        main(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def only_line(text: str) -> str:
    """Return the text, which must be one line without a traceback."""
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert "Traceback" not in text
    return text.strip()


@pytest.mark.parametrize("module", COMMANDS, ids=lambda module: module.NAME)
def test_every_command_shows_examples_in_its_help(module, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(module.NAME, "--help") == 0
    assert f"course {module.NAME}" in capsys.readouterr().out.partition("Examples:")[2]


def test_help_explains_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--help") == 0
    assert "Exit codes: 0" in capsys.readouterr().out


def test_help_loads_no_heavy_library() -> None:
    code = f"import sys, autograder.cli; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_the_grader_itself_loads_no_pytorch() -> None:
    code = "import sys, autograder.grading.engine, autograder.grading.pool; print('torch' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "False"


def test_no_command_builds_a_parser_of_web_addresses() -> None:
    lines = (
        "import sys, autograder.cli",
        "try: autograder.cli.main(['--help'])",
        "except SystemExit: pass",
        "import jsonschema, nbformat; print('lark' in sys.modules, file=sys.stderr)",
    )
    loaded = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert loaded.stderr.strip() == "False"


@pytest.mark.parametrize(("option", "least"), [("--memory", 256), ("--notebook-timeout", 10), ("--workers", 1)])
def test_a_limit_too_small_for_any_notebook_is_wrong_use(
    option: str, least: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("grade", CHAPTER, option, str(least - 1)) == 2
    assert str(least) in capsys.readouterr().err


def test_an_unknown_option_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("build", "--no-such-option") == 2
    assert "--no-such-option" in capsys.readouterr().err


def test_a_folder_outside_a_course_is_named_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code("build") == 2
    assert "not inside a course" in only_line(capsys.readouterr().err)


def test_an_unknown_chapter_is_named_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(make_tiny_course(tmp_path / "course"))
    assert exit_code("build", "01_tinny") == 2
    assert f"did you mean {CHAPTER}?" in only_line(capsys.readouterr().err)


@pytest.mark.parametrize("given", ["01_tiny", "01", "1", "tiny"])
def test_a_chapter_is_built_by_folder_number_or_title(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    course = make_tiny_course(tmp_path / "course")
    monkeypatch.chdir(course)
    assert exit_code("build", given) == 0
    assert f"{CHAPTER}: written" in capsys.readouterr().out
    assert (course / "chapters" / CHAPTER / f"{CHAPTER}.ipynb").is_file()


def test_a_stale_chapter_gives_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(make_tiny_course(tmp_path / "course"))
    assert exit_code("build", CHAPTER, "--check") == 1
    assert f"chapters/{CHAPTER}/{CHAPTER}.ipynb is missing" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("build",), ("demo",), ("grade", CHAPTER)])
def test_without_the_instructors_packages_a_sentence_says_what_to_install(
    arguments: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(make_tiny_course(tmp_path / "course"))
    monkeypatch.setattr("autograder.commands.common.find_spec", lambda name: None)
    assert exit_code(*arguments) == 2
    assert "[instructor]" in only_line(capsys.readouterr().err)


def test_an_error_out_of_a_command_becomes_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def planted(**_) -> None:
        raise CourseError("Planted: say so.")

    monkeypatch.setattr("autograder.reports.coverage.coverage_rows", planted)
    assert exit_code("coverage") == 2
    assert only_line(capsys.readouterr().err) == "Planted: say so."


def test_a_file_that_cannot_be_used_becomes_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def planted(**_) -> None:
        raise PermissionError(13, "Permission denied", "planted.txt")

    monkeypatch.setattr("autograder.reports.coverage.coverage_rows", planted)
    assert exit_code("coverage") == 2
    assert only_line(capsys.readouterr().err) == "planted.txt cannot be used: Permission denied."
