"""Stock nbgrader on every chapter: a complete submission gets every automatic point, an untouched one none."""

import shutil
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.build import build_chapter
from autograder.course_folder import chapter_names, source_path
from autograder.grading.demo_class import Draft, hand_in, read_material
from autograder.grading.stock_cycle_test import ROOT, run

pytestmark = pytest.mark.slow
FIRST = "01_attention"  # the whole cycle of stock_cycle_test.py runs on this one


@pytest.mark.parametrize("chapter", [name for name in chapter_names(ROOT) if name != FIRST])
def test_stock_nbgrader_grades_the_chapter(chapter: str, tmp_path: Path) -> None:
    source = source_path(tmp_path, chapter)
    source.parent.mkdir()
    shutil.copy(source_path(ROOT, chapter), source)
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    build_chapter(source, tmp_path)
    material = read_material(tmp_path, chapter)
    hand_in(tmp_path, material, {"complete": Draft(material.answers), "untouched": Draft({}, written=None)})
    run("nbgrader", "generate_assignment", chapter, "--force", folder=tmp_path)
    run("nbgrader", "autograde", chapter, folder=tmp_path)
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        complete = gradebook.find_submission(chapter, "complete").notebooks[0]
        untouched = gradebook.find_submission(chapter, "untouched").notebooks[0]
        automatic = sum(grade.max_score for grade in complete.grades if grade.cell.cell_type != "markdown")
        assert automatic > 0
        assert complete.score == automatic
        assert untouched.score == 0
