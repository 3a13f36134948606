"""A roster as a spreadsheet writes it is read, and a bad one is one sentence."""

from pathlib import Path

import pytest

from autograder.collecting.roster import Roster, Student, read_roster
from autograder.errors import CourseError


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no column `id`"),
        ("name,email\nAda,a@x\n", "no column `id`; its columns are: name, email"),
        ("id,name\n", "names no student"),
        ("id\nada1\nADA1\n", "line 3: the id 'ADA1' stands there twice"),
        ("id\n../ada\n", "cannot name a folder"),
        ('id\n"a\nb"\n', "cannot name a folder"),
        (f"id\n{'x' * 256}\n", "cannot name a folder"),
        (f"id\n{'x' * 200_000}\n", "no CSV file that can be read: field larger than"),
        ('id,name\nada1,"Ada\nben1,Ben\n', "no CSV file that can be read: unexpected end"),
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


def test_words_that_point_at_different_students_settle_nobody() -> None:
    ada, ben = (
        Student("ada1", "Ada", "Lovelace", lms_user_id="101"),
        Student("ben1", "Ben", "Muller", lms_user_id="102"),
    )
    roster = Roster({one.id: one for one in (ada, ben)})
    assert roster.whom("mullerben", number="101") == [ben, ada]
    assert roster.whom("mullerben", number="102") == [ben]
    assert roster.whom("ada1", "Ben Muller") == [ada, ben]
    assert roster.whom("Zed Stranger", "ada1") == [ada]


def test_an_id_that_equals_a_number_of_the_lms_counts_beside_a_name_alone() -> None:
    one, two = Student("1", "Chris", "Doe"), Student("2", "Chris", "Doe")
    roster = Roster({"1": one, "2": two})
    assert roster.whom("doechris", number="2") == [two]
    assert roster.whom("strangerzed", number="2") == []


def test_a_gradebook_of_canvas_gives_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text('Student,ID,SIS User ID\n"Doe, Jane",104,jd\n', encoding="utf-8")
    assert [one.id for one in read_roster(path).whom("strangerzed", number="104")] == ["104"]


def test_accents_make_no_difference_where_letters_run_together() -> None:
    ben = Student("ben1", "Ben", "M\xfcller")
    assert Roster({"ben1": ben}).whom("mullerben") == [ben]
