"""Archives as each LMS makes them, good and bad, into a course folder."""

import stat
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.cli import main
from autograder.collecting import archives
from autograder.collecting.collect import collect
from autograder.collecting.packing import CHAPTER, NOTEBOOK, by_moodle, collected, everything, packed, stamp, take, text
from autograder.errors import CourseError


def test_canvas_names_attempts_and_late_marks_are_read(course: Path) -> None:
    done = take(
        course,
        "canvas",
        {
            f"lovelaceada_101_9001_{NOTEBOOK}": "first",
            f"lovelaceada_LATE_101_9002_{CHAPTER}-1.ipynb": "second",
            f"lovelaceada_LATE_101_9003_{CHAPTER}-10.ipynb": "tenth",
            "lovelaceada_101_9004_helper.py": "x = 1",
            f"mullerben_102_9005_{NOTEBOOK}": "ben's",
        },
    )
    assert done.students == ["ada1", "ben1"]
    assert text(course, "ada1") == "tenth"
    assert [text(course, "ada1", "submitted_earlier", number) for number in ("01", "02")] == ["first", "second"]
    assert any("ada1 handed in late" in note for note in done.notes)
    assert not any("ben1 handed in late" in note for note in done.notes)
    assert done.missing == ["dup1", "dup2"]


def test_moodle_folders_and_flat_names_are_read(course: Path) -> None:
    done = take(
        course,
        "moodle",
        {
            f"Ada Lovelace_555_assignsubmission_file_/{NOTEBOOK}": "ada's",
            f"Ben Müller_556_assignsubmission_file_{NOTEBOOK}": "ben's",
            "Ada Lovelace_555_assignsubmission_onlinetext_/onlinetext.html": "<p>hi</p>",
        },
    )
    assert done.students == ["ada1", "ben1"]
    assert (text(course, "ada1"), text(course, "ben1")) == ("ada's", "ben's")


def test_blackboard_tells_the_time_and_the_latest_attempt_counts(course: Path) -> None:
    done = take(
        course,
        "blackboard",
        {
            f"Week 1_ada1_attempt_2026-01-31-22-10-05_{NOTEBOOK}": "later",
            f"Week 1_ada1_attempt_2026-01-30-08-00-00_{NOTEBOOK}": "earlier",
            "Week 1_ada1_attempt_2026-01-31-22-10-05.txt": "Name: Ada",
        },
    )
    assert done.students == ["ada1"]
    assert text(course, "ada1") == "later"
    assert text(course, "ada1", "submitted_earlier", "01") == "earlier"
    utc = datetime(2026, 1, 31, 22, 10, 5).astimezone(UTC)
    assert stamp(course, "ada1") == utc.strftime("%Y-%m-%d %H:%M:%S UTC\n")


def test_gradescope_lists_who_handed_in(course: Path) -> None:
    listed = (
        "submission_1:\n  :submitters:\n  - :name: Ada Lovelace\n    :sid: ada1\n    :email: ada@uni.example\n"
        "  :created_at: 2026-01-31 22:10:05.000000000 Z\n"
        "submission_2:\n  :submitters:\n  - :name: Ben Müller\n    :email: ben@uni.example\n"
        "  :created_at: 2026-01-31 23:10:05.000000000 Z\n"
    )
    done = take(
        course,
        "gradescope",
        {
            "assignment_1_export/submission_metadata.yml": listed,
            f"assignment_1_export/submission_1/{NOTEBOOK}": "ada's",
            f"assignment_1_export/submission_2/{NOTEBOOK}": "ben's",
        },
    )
    assert done.students == ["ada1", "ben1"]
    assert stamp(course, "ada1") == "2026-01-31 22:10:05 UTC\n"


def test_a_list_of_gradescope_that_would_run_code_is_refused(course: Path) -> None:
    hostile = f"!!python/object/apply:os.mkdir ['{course}/ran']"
    with pytest.raises(CourseError, match="cannot be read"):
        take(course, "gradescope", {"e/submission_metadata.yml": hostile, f"e/submission_1/{NOTEBOOK}": "x"})
    assert not (course / "ran").exists()


def test_a_folder_of_folders_or_of_notebooks_is_read(course: Path, tmp_path: Path) -> None:
    handed_in = tmp_path / "handed in"
    (handed_in / "ada1").mkdir(parents=True)
    (handed_in / "ada1" / f"{CHAPTER} (1).ipynb").write_text("ada's")
    (handed_in / "ada1" / "helper.py").write_text("x = 1")
    (handed_in / "ben1.ipynb").write_text("ben's")
    done = collect(course, handed_in, "folder", None, [CHAPTER], CHAPTER)
    assert done.students == ["ada1", "ben1"]
    assert everything(course / "submitted") == {
        f"ada1/{CHAPTER}/{NOTEBOOK}",
        f"ada1/{CHAPTER}/helper.py",
        f"ben1/{CHAPTER}/{NOTEBOOK}",
    }


def test_a_folder_around_everything_does_not_matter(course: Path) -> None:
    assert take(course, "folder", {f"export/ada1/{NOTEBOOK}": "a", f"export/ben1/{NOTEBOOK}": "b"}).students == [
        "ada1",
        "ben1",
    ]


@pytest.mark.parametrize("other", [("x", "x/y.txt"), ("x/y.txt", "x"), (f"{NOTEBOOK}/y.txt",), ("x" * 300 + ".txt",)])
def test_a_name_that_no_file_can_have_is_left_out_with_a_note(other: tuple[str, ...], course: Path) -> None:
    files: dict[str, str | bytes] = {f"ada1/{name}": "x" for name in other} | {f"ada1/{NOTEBOOK}": "a"}
    done = take(course, "folder", files | {f"ben1/{NOTEBOOK}": "b"})
    assert done.students == ["ada1", "ben1"]
    assert (text(course, "ada1"), text(course, "ben1")) == ("a", "b")
    assert len([note for note in done.notes if "cannot be kept under this name" in note]) == 1


def test_an_archive_that_is_damaged_inside_leaves_the_course_as_it_was(course: Path, tmp_path: Path) -> None:
    path = packed(tmp_path / "damaged.zip", {f"ada1/{NOTEBOOK}": "a", "ben1/x.txt": "b" * 5000})
    data = bytearray(path.read_bytes())
    start = data.index(b"x.txt") + len(b"x.txt")
    data[start : start + 4] = b"\xff" * 4
    path.write_bytes(bytes(data))
    before = everything(course)
    with pytest.raises(CourseError, match="damaged in the archive"):
        collected(course, path)
    assert everything(course) == before
    assert not list(course.glob(".collecting-*"))


def test_two_of_one_name_alone_are_both_named_in_the_refusal(course: Path) -> None:
    with pytest.raises(CourseError, match="Chris Doe can be dup1 or dup2"):
        take(course, "moodle", by_moodle("Chris Doe"))


def test_an_archive_of_another_system_says_which_file_it_does_not_know(course: Path) -> None:
    with pytest.raises(CourseError, match="not named as Blackboard names submissions"):
        take(course, "blackboard", {f"lovelaceada_101_1_{NOTEBOOK}": "a"})


def test_who_is_not_in_the_roster_is_listed_and_never_guessed(course: Path) -> None:
    done = take(course, "moodle", by_moodle("Adda Lovelace", "Ada Lovelace"))
    assert done.unknown == ["Adda Lovelace"]
    assert done.students == ["ada1"]


def test_two_students_with_one_name_are_both_named(course: Path) -> None:
    done = take(course, "moodle", by_moodle("Chris Doe", "Ada Lovelace"))
    assert done.ambiguous == {"Chris Doe": ["dup1", "dup2"]}
    assert done.students == ["ada1"]


def test_a_mark_of_the_lms_settles_two_of_one_name(course: Path) -> None:
    assert take(course, "canvas", {f"doechris_104_1_{NOTEBOOK}": "x"}).students == ["dup2"]


def test_collecting_again_changes_nothing(course: Path) -> None:
    files: dict[str, str | bytes] = {f"lovelaceada_101_9001_{NOTEBOOK}": "first"}
    take(course, "canvas", files)
    before = everything(course)
    again = take(course, "canvas", files)
    assert (again.students, again.unchanged) == ([], ["ada1"])
    assert everything(course) == before


def test_a_newer_submission_replaces_and_the_older_is_kept(course: Path) -> None:
    take(course, "canvas", {f"lovelaceada_101_9001_{NOTEBOOK}": "first"})
    take(course, "canvas", {f"lovelaceada_101_9002_{NOTEBOOK}": "second"})
    assert text(course, "ada1") == "second"
    assert text(course, "ada1", "submitted_earlier", "01") == "first"


def test_a_systems_clutter_is_left_out_without_a_word(course: Path) -> None:
    done = take(
        course,
        "folder",
        {
            f"ada1/{NOTEBOOK}": "a",
            f"__MACOSX/ada1/._{NOTEBOOK}": "m",
            "ada1/.DS_Store": "d",
            f"ada1/.ipynb_checkpoints/{CHAPTER}-checkpoint.ipynb": "old",
        },
    )
    assert done.notes == []
    assert everything(course / "submitted") == {f"ada1/{CHAPTER}/{NOTEBOOK}"}


@pytest.mark.parametrize(
    "name", ["../../outside.ipynb", "/etc/outside.ipynb", "C:\\outside.ipynb", "ada1\\..\\..\\o.ipynb"]
)
def test_a_name_that_leads_out_is_left_out(name: str, course: Path) -> None:
    done = take(course, "folder", {f"ada1/{NOTEBOOK}": "a", name: "x"})
    assert any("leads out of the archive" in note for note in done.notes)
    assert everything(course / "submitted") == {f"ada1/{CHAPTER}/{NOTEBOOK}"}


def test_links_are_left_out_of_archives_and_folders(course: Path, tmp_path: Path) -> None:
    link = zipfile.ZipInfo("ada1/link.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = packed(tmp_path / "links.zip", {f"ada1/{NOTEBOOK}": "a"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    done = collected(course, path)
    assert done.notes == ["ada1/link.ipynb is a link and was left out."]
    handed_in = tmp_path / "handed_in" / "ben1"
    handed_in.mkdir(parents=True)
    (handed_in / NOTEBOOK).write_text("b")
    (handed_in / "secret.txt").symlink_to("/etc/passwd")
    (handed_in / "all").symlink_to("/etc")
    done = collected(course, tmp_path / "handed_in")
    assert "ben1/secret.txt is a link and was left out." in done.notes
    assert not any("passwd" in name for name in everything(course))


def test_a_bomb_is_refused_before_it_is_unpacked(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST_WHOLE", 3 * 2**20)
    with pytest.raises(CourseError, match="would unpack to 4 MB, more than the 3 MB"):
        take(course, "folder", {f"ada1/{NOTEBOOK}": "a", "ada1/zeros.bin": b"\0" * 4 * 2**20})
    assert not (course / "submitted").exists()


def test_a_file_that_is_too_large_is_left_out(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST_FILE", 2**20)
    done = take(course, "folder", {f"ada1/{NOTEBOOK}": "a", "ada1/big.bin": b"\0" * 2 * 2**20})
    assert done.notes == ["ada1/big.bin has 2 MB, more than 1, and was left out."]


def test_a_bad_archive_leaves_the_course_as_it_was(course: Path, tmp_path: Path) -> None:
    before = everything(course)
    with pytest.raises(CourseError, match="holds no file"):
        collected(course, packed(tmp_path / "bad.zip", {}))
    assert everything(course) == before


def test_the_chapter_has_to_be_said_where_the_names_do_not(course: Path) -> None:
    with pytest.raises(CourseError, match="Say it with --chapter"):
        take(course, "folder", {"ada1/homework.ipynb": "a"})
    take(course, "folder", {"ada1/homework.ipynb": "a"}, chapter=CHAPTER)
    assert text(course, "ada1") == "a"


def test_people_without_ids_need_a_roster(course: Path, tmp_path: Path) -> None:
    archive = packed(tmp_path / "a.zip", {f"x_1_2_{NOTEBOOK}": "a"})
    with pytest.raises(CourseError, match="--roster"):
        collect(course, archive, "canvas", None, [CHAPTER])


def test_an_unknown_system_is_named_with_the_known_ones(course: Path) -> None:
    with pytest.raises(CourseError, match="canvas, moodle, blackboard, gradescope, folder"):
        take(course, "sakai", {f"ada1/{NOTEBOOK}": "a"})


def test_the_command_lists_the_unknown_and_ends_with_1(course: Path, tmp_path: Path, capsys) -> None:
    archive = packed(tmp_path / "a.zip", by_moodle("Adda Lovelace", "Ada Lovelace"))
    with pytest.raises(SystemExit) as end:
        main(("collect", str(archive), "--from", "moodle", "--course", str(course)))
    said = capsys.readouterr().out
    assert end.value.code == 1
    assert "1 submission collected" in said
    assert "Not in the roster: Adda Lovelace (like ada1?)" in said
    assert "Nothing from: ben1, dup1, dup2" in said
