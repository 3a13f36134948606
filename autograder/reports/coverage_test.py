"""The table of coverage: its counts, and its place in the README."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.errors import CourseError
from autograder.reports import coverage
from autograder.reports.coverage import (
    BEGIN,
    END,
    coverage_rows,
    markdown_table,
    stale_coverage,
    with_table,
    write_table,
)


def made_up(name: str, chapter: str, visible: int, hidden: int, beliefs: int, forms: int) -> SimpleNamespace:
    """Return something that counts like an exercise."""
    cases = [SimpleNamespace(hidden=number < hidden) for number in range(visible + hidden)]
    return SimpleNamespace(
        name=name,
        chapter=chapter,
        cases=cases,
        misconceptions=dict.fromkeys(range(beliefs)),
        alternatives=dict.fromkeys(range(forms)),
    )


EXERCISES = [made_up("later", "02_b", 1, 2, 3, 4), made_up("early", "01_a", 5, 6, 7, 8)]


def test_rows_count_visible_and_hidden_cases_apart_and_follow_the_chapters() -> None:
    assert coverage_rows(EXERCISES) == [
        {"exercise": "early", "chapter": "01_a", "cases": 5, "hidden_cases": 6, "misconceptions": 7, "alternatives": 8},
        {"exercise": "later", "chapter": "02_b", "cases": 1, "hidden_cases": 2, "misconceptions": 3, "alternatives": 4},
    ]


def test_every_registered_exercise_has_a_row_of_integers() -> None:
    from autograder import exercise_names

    rows = coverage_rows()
    assert sorted(str(row["exercise"]) for row in rows) == sorted(exercise_names())
    assert {type(row[key]) for row in rows for key in row if key not in ("exercise", "chapter")} == {int}


def test_the_table_goes_between_the_markers_and_nothing_else_changes() -> None:
    rows = coverage_rows(EXERCISES)
    text = with_table(f"before\n{BEGIN}\nold\n{END}\nafter\n", rows)
    assert text == f"before\n{BEGIN}\n{markdown_table(rows)}\n{END}\nafter\n"
    assert with_table(text, rows) == text


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}{BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"])
def test_missing_or_doubled_markers_are_refused(text: str) -> None:
    with pytest.raises(CourseError, match="README"):
        with_table(text, coverage_rows(EXERCISES))


def test_a_stale_table_is_found_and_writing_mends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "coverage_rows", lambda: coverage_rows(EXERCISES))
    readme = tmp_path / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n")
    assert "course coverage --write" in stale_coverage(readme)[0]
    assert write_table(readme, coverage_rows(EXERCISES))
    assert stale_coverage(readme) == []
    assert not write_table(readme, coverage_rows(EXERCISES))
