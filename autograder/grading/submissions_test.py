"""Finding submissions, and saying what is wrong where there are none."""

from pathlib import Path

import pytest

from autograder.errors import CourseError
from autograder.grading.submissions import HandedIn, Submission, find_submissions, only_student, read_submission

CHAPTER = "01_tiny"


@pytest.fixture
def submitted(tmp_path: Path) -> Path:
    """Return a folder with two submissions."""
    for student in ("bea", "ada"):
        folder = tmp_path / "submitted" / student / CHAPTER
        folder.mkdir(parents=True)
        (folder / f"{CHAPTER}.ipynb").touch()
    return tmp_path / "submitted"


def find(submitted: Path, chapter: str = CHAPTER) -> list[Submission]:
    """Find the submissions in a course around `submitted`."""
    return find_submissions(submitted, submitted.parent / "autograded", submitted.parent / "feedback", chapter)


def test_submissions_come_by_student(submitted: Path) -> None:
    assert [submission.student for submission in find(submitted)] == ["ada", "bea"]


def test_no_submission_says_where_they_belong(submitted: Path, tmp_path: Path) -> None:
    for place, chapter in ((submitted, "02_other"), (tmp_path / "nothing", CHAPTER)):
        with pytest.raises(CourseError, match=f"STUDENT/{chapter}/{chapter}.ipynb"):
            find(place, chapter)


def test_swapped_levels_are_recognized(tmp_path: Path) -> None:
    (tmp_path / CHAPTER / "ada").mkdir(parents=True)
    with pytest.raises(CourseError, match="swapped"):
        find(tmp_path)


def test_an_unknown_student_is_named_with_the_nearest(submitted: Path) -> None:
    with pytest.raises(CourseError, match="did you mean ada"):
        only_student(find(submitted), "adda")
    assert [item.student for item in only_student(find(submitted), "bea")] == ["bea"]


def handed_in(folder: Path, files: dict[str, bytes], marked: tuple[str, ...] = ("double", "triple")) -> HandedIn:
    """Read a folder that holds these files."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    path = folder / f"{CHAPTER}.ipynb"
    return read_submission(Submission("ada", path, folder, folder), marked)


def test_the_files_beside_the_notebook_are_read_and_others_are_not(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("not handed in")
    folder = tmp_path / "ada"
    files = {f"{CHAPTER}.ipynb": b"{}", "data.csv": b"1", ".hidden": b"2", "other.ipynb": b"{}"}
    handed_in(folder, files)
    (folder / "link").symlink_to(tmp_path / "secret")
    found = read_submission(Submission("ada", folder / f"{CHAPTER}.ipynb", folder, folder), ())
    assert (found.data, found.files) == (b"{}", {"data.csv": b"1"})
    assert "link" in found.notes[0]


def test_a_link_is_no_notebook(tmp_path: Path) -> None:
    (tmp_path / "theirs.ipynb").write_text("{}")
    folder = tmp_path / "ada"
    folder.mkdir()
    (folder / f"{CHAPTER}.ipynb").symlink_to(tmp_path / "theirs.ipynb")
    found = read_submission(Submission("ada", folder / f"{CHAPTER}.ipynb", folder, folder), ())
    assert found.data is None
    assert "link" in found.reason


def test_one_notebook_of_another_name_is_taken_and_two_are_not(tmp_path: Path) -> None:
    mine = b'{"grade_id": "double", "other": "triple"}'
    found = handed_in(tmp_path / "one", {"mine.ipynb": mine, "scratch.ipynb": b"{}"})
    assert found.data == mine
    assert "mine.ipynb" in found.notes[0]
    found = handed_in(tmp_path / "two", {"a.ipynb": mine, "b.ipynb": mine})
    assert found.data is None
    assert found.reason.endswith("found only a.ipynb, b.ipynb.")


@pytest.mark.parametrize(
    ("stamp", "hour"), [(b"2026-02-01 22:00:00 UTC", 22), (b"2026-02-01 22:00:00 +0100", 21), (b"", None), (b"?", None)]
)
def test_the_time_of_handing_in_is_utc_or_unknown(stamp: bytes, hour: int | None) -> None:
    timestamp = HandedIn(stamp=stamp).timestamp
    assert (None if timestamp is None else timestamp.hour) == hour
