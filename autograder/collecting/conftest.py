"""What the tests of collecting share."""

from pathlib import Path

import pytest

from autograder.collecting.packing import CHAPTER, ROSTER


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Make a course folder with a roster."""
    folder = tmp_path / "course"
    (folder / "solutions").mkdir(parents=True)
    (folder / "solutions" / f"{CHAPTER}.py").write_text("")
    (folder / "nbgrader_config.py").write_text("")
    (folder / "roster.csv").write_text(ROSTER, encoding="utf-8")
    return folder
