"""`course lab`: ports, displays, chapters, and a server that starts and ends."""

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.build import build_all
from autograder.commands import lab
from autograder.errors import CourseError
from autograder.testing.tiny_course import CHAPTER, make_tiny_course

HERE = "127.0.0.1"
START_SECONDS = 120  # before a server counts as not starting at all


@pytest.fixture
def taken_port() -> Iterator[int]:
    """Return a port that another server listens on."""
    with socket.socket() as server:
        server.bind((HERE, 0))
        server.listen()
        yield server.getsockname()[1]


@pytest.fixture
def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as server:
        server.bind((HERE, 0))
        return server.getsockname()[1]


def test_a_taken_port_that_was_asked_for_is_refused(taken_port: int) -> None:
    with pytest.raises(CourseError, match=f"Port {taken_port} is taken"):
        lab.choose_port(taken_port, HERE)


def test_a_free_port_that_was_asked_for_is_used(free_port: int) -> None:
    assert lab.choose_port(free_port, HERE) == free_port


def test_the_next_free_port_is_used_and_named(
    taken_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab, "FIRST_PORT", taken_port)
    chosen = lab.choose_port(None, HERE)
    assert chosen > taken_port
    assert f"Port {taken_port} is taken" in capsys.readouterr().err


def test_an_address_of_no_machine_is_refused(free_port: int) -> None:
    with pytest.raises(CourseError, match="--ip"):
        lab.choose_port(free_port, "no such host")


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"DISPLAY": ""}, "linux", False),
        ({}, "darwin", True),
        ({}, "win32", True),
    ],
)
def test_a_browser_needs_a_display_on_linux(environment: dict, platform: str, expected: bool) -> None:
    assert lab.has_browser(environment, platform) is expected


@pytest.mark.parametrize("root", [True, False])
def test_root_is_allowed_only_where_one_is_root(root: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "is_root", lambda: root)
    command = lab.lab_command(Path("chapters"), "a/a.ipynb", lab.FIRST_PORT, HERE, open_browser=False)
    assert ("--allow-root" in command) is root


def test_jupyter_asks_the_network_for_nothing() -> None:
    command = lab.lab_command(Path("chapters"), "a/a.ipynb", lab.FIRST_PORT, HERE, open_browser=True)
    assert "--LabApp.news_url=None" in command
    assert "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate" in command


def test_a_course_without_chapters_says_how_to_build_them(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="course build"):
        lab.chapter_notebook(tmp_path, None)


def test_the_first_chapter_opens_unless_one_is_named(tmp_path: Path) -> None:
    for name in ("02_b", "01_a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.ipynb").touch()
    assert lab.chapter_notebook(tmp_path, None) == "01_a/01_a.ipynb"
    assert lab.chapter_notebook(tmp_path, "2") == "02_b/02_b.ipynb"
    with pytest.raises(CourseError, match="03"):
        lab.chapter_notebook(tmp_path, "03")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kernel: Windows has no SIGINT for another process")
def test_the_printed_address_serves_the_notebook_and_ctrl_c_ends_it(tmp_path: Path, free_port: int) -> None:
    course = make_tiny_course(tmp_path / "course")
    build_all(course)
    server = subprocess.Popen(
        [sys.executable, "-m", "autograder.cli", "lab", "--no-browser", "--port", str(free_port)],
        cwd=course,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = printed_address(server)
        assert f"/lab/tree/{CHAPTER}/{CHAPTER}.ipynb" in address
        assert "JupyterLab" in page(address)
        server.send_signal(signal.SIGINT)
        _, complaints = server.communicate(timeout=START_SECONDS)
    finally:
        server.kill()
    assert server.returncode == 0
    assert "Traceback" not in complaints


def printed_address(server: subprocess.Popen[str]) -> str:
    """Read the server's words up to its address."""
    assert server.stdout is not None
    for line in server.stdout:
        if match := re.search(r"http://\S+", line):
            return match[0]
    raise AssertionError("course lab printed no address")


def page(address: str) -> str:
    """Return the page as soon as the server gives it."""
    for _ in range(START_SECONDS):
        try:
            with urllib.request.urlopen(address) as answer:
                return answer.read().decode()
        except OSError:
            time.sleep(1)
    raise AssertionError("the server never answered")
