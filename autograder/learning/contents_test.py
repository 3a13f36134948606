from pathlib import Path

import pytest

from autograder.course_folder import find_course, learner_chapters
from autograder.learning.contents import NOT_HERE, chapter_table, contents, progress_table

COURSE = find_course(Path(__file__).parent)


def test_every_chapter_with_exercises_has_its_time_and_points() -> None:
    found = contents(COURSE)
    assert [one.chapter for one in found] == learner_chapters(COURSE)
    for one in found:
        assert "minute" in one.time or "hour" in one.time, one
        assert "points" in one.counts, one


def test_the_table_links_every_chapter() -> None:
    shown = chapter_table(COURSE)._repr_html_()
    for chapter in learner_chapters(COURSE):
        assert f'href="../{chapter}/{chapter}.ipynb"' in shown


def test_outside_a_course_the_tables_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for table in (chapter_table(), progress_table()):
        assert str(table) == NOT_HERE
        assert NOT_HERE in table._repr_html_()


def test_progress_is_a_row_for_each_chapter_and_one_for_all() -> None:
    rows = progress_table(COURSE).rows
    assert [row[0] for row in rows] == [*learner_chapters(COURSE), "all"]


def test_a_damaged_notebook_is_left_out_of_the_contents(tmp_path: Path) -> None:
    folder = tmp_path / "chapters" / "01_a"
    folder.mkdir(parents=True)
    (folder / "01_a.ipynb").write_text("{")
    assert contents(tmp_path) == []
