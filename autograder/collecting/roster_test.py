"""A roster as a spreadsheet writes it is read, and a bad one is one sentence."""

from pathlib import Path

import pytest

from autograder.collecting.roster import read_roster
from autograder.errors import CourseError


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no column `id`"),
        ("name,email\nAda,a@x\n", "no column `id`; its columns are: name, email"),
        ("id,name\n", "names no student"),
        ("id\nada1\nADA1\n", "line 3: the id 'ADA1' stands there twice"),
        ("id\n../ada\n", "cannot name a folder"),
    ],
)
def test_a_bad_roster_is_one_sentence(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text(content)
    with pytest.raises(CourseError, match=words):
        read_roster(path)


def test_a_roster_with_a_byte_order_mark_and_semicolons_is_read(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_bytes("\ufeffid;first_name;last_name\r\nada1;Ada;Łovelace, Jr.\r\n".encode())
    roster = read_roster(path)
    assert roster.students["ada1"].full_name == "Ada Łovelace, Jr."
