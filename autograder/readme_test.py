"""The commands of README, CONTRIBUTING and the instructors' page, run as written in a fresh clone."""

import re
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from autograder.course_folder import find_course

ROOT = find_course(Path(__file__).parent)
PAGES = ("README.md", "CONTRIBUTING.md", "docs/instructors.md")
MINUTES = 20


def commands(page: str) -> list[str]:
    """Give the lines of a page's bash blocks, without comments."""
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    lines = (re.sub(r"\s+#.*", "", line).strip() for block in blocks for line in block.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def fresh_clone(folder: Path) -> Path:
    """Copy what git would hand over: files that are tracked, and those that are new and not ignored."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listing.stdout.split("\0")):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return folder


def run(line: str, clone: Path) -> str:
    """Run one command as written and give what it printed."""
    done = subprocess.run(["bash", "-c", line], cwd=clone, capture_output=True, text=True, timeout=MINUTES * 60)
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def open_and_close(line: str, clone: Path) -> None:
    """Start JupyterLab as written, open the address that it prints, and end it with Ctrl-C."""
    lab = subprocess.Popen(
        ["bash", "-c", f"exec {line}"],
        cwd=clone,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert lab.stdout is not None
        address = next(found.group(0) for text in lab.stdout if (found := re.search(r"http://\S+", text)))
        assert "00_start_here" in address
        assert b"jupyter" in ask(address)
    finally:
        lab.send_signal(signal.SIGINT) if "course" in line else subprocess.run(
            ["pkill", "-INT", "-s", str(lab.pid)], check=False
        )
        lab.wait(timeout=60)
        lab.stdout.close() if lab.stdout else None


def ask(address: str) -> bytes:
    """Read a page as soon as the server is up."""
    for _ in range(120):
        try:
            with urllib.request.urlopen(address, timeout=10) as page:
                return page.read().lower()
        except OSError:
            subprocess.run(["sleep", "0.5"], check=True)
    raise AssertionError(f"{address} did not answer")


@pytest.mark.slow
def test_commands_of_the_pages_run_as_written(tmp_path: Path) -> None:
    clone = fresh_clone(tmp_path / "clone")
    for line in dict.fromkeys(line for page in PAGES for line in commands(page)):
        if line.startswith("sudo apt-get"):
            continue  # the packages that .ci/run installs; the next test compares the two
        if line == "make test":
            run("make -n test", clone)  # this test is part of it
        elif line.endswith(("make lab", "course lab")):
            open_and_close(line, clone)
        else:
            if "course grade" in line and "--course" not in line:
                hand_in(clone)
            run(line, clone)
    assert (clone / "results" / "01_attention.json").is_file()


def hand_in(clone: Path) -> None:
    """Hand in two of the demonstration's submissions."""
    for student in sorted((clone / "demo" / "submitted").iterdir())[:2]:
        shutil.copytree(student, clone / "submitted" / student.name, dirs_exist_ok=True)


def test_packages_named_for_contributors_are_those_that_ci_installs() -> None:
    named = re.search(r"apt-get install -y ([a-z ]+)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    installed = re.findall(r"missing\+=\((\w+)\)", (ROOT / ".ci" / "run").read_text("utf-8"))
    assert named is not None
    assert named.group(1).split() == installed


def test_every_file_that_readme_links_to_is_there() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text("utf-8")):
            if "://" not in target:
                assert (ROOT / page).parent.joinpath(target).exists(), f"{page} links to {target}"
