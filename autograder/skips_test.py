"""The rule about skips in continuous integration, tried on planted skips."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLANTED = """
import pytest

def test_runs():
    pass

@pytest.mark.skip(reason="{reason}")
def test_cannot_run():
    pass
"""


def run_planted(folder: Path, reason: str, ci: str) -> subprocess.CompletedProcess[str]:
    """Run one passing and one skipped test under this repository's rules."""
    (folder / "planted_test.py").write_text(PLANTED.format(reason=reason))
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "planted_test.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("reason", "ci", "passes"),
    [
        ("needs Chromium: apt-get install chromium", "", True),
        ("needs Chromium: apt-get install chromium", "true", False),
        ("kernel: no user namespaces", "true", True),
        ("hardware: no GPU", "true", True),
    ],
)
def test_only_kernel_and_hardware_excuse_a_skip_in_ci(reason: str, ci: str, passes: bool, tmp_path: Path) -> None:
    outcome = run_planted(tmp_path, reason, ci)
    assert (outcome.returncode == 0) is passes, outcome.stdout + outcome.stderr
    assert f"{reason} (1 test)" in outcome.stdout
