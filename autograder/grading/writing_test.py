"""Files are written whole or not at all, also where there is no room."""

import errno
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import pytest

from autograder.errors import CourseError
from autograder.grading import writing
from autograder.grading.writing import append, in_a_sentence, put


def full_after(most: int) -> Callable[[FileIO, bytes], None]:
    """Return a `write` that stops for want of room."""

    def write(file: FileIO, content: bytes) -> None:
        file.write(content[:most])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file.name))

    return write


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    put(path, b"old")
    put(path, b"new", 0o444)
    put(path, b"newer")
    assert path.read_bytes() == b"newer"
    assert [item.name for item in path.parent.iterdir()] == ["file"]


def test_without_room_the_old_file_stays_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    put(path, b"old")
    monkeypatch.setattr(writing, "write", full_after(2))
    with pytest.raises(CourseError, match=r"The disk is full while .*file.* was written; make room"), in_a_sentence():
        put(path, b"newer")
    assert path.read_bytes() == b"old"
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_without_room_no_half_line_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines"
    append(path, "one\n")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(writing, "write", full_after(2))
        append(path, "two\n")
    append(path, "three\n")
    assert path.read_text() == "one\nthree\n"


def test_a_line_that_a_kill_cut_short_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("one\ntw")
    append(path, "three\n")
    assert path.read_text().splitlines() == ["one", "tw", "three"]


def test_a_file_in_pieces_is_written_whole(tmp_path: Path) -> None:
    class Reluctant(FileIO):
        def write(self, content: bytes) -> int:
            return super().write(content[:3])

    with Reluctant(tmp_path / "file", "w") as file:
        writing.write(file, b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_other_errors_of_the_file_system_get_a_sentence_and_mistakes_do_not() -> None:
    with pytest.raises(CourseError, match="results cannot be used: Permission denied"), in_a_sentence():
        raise PermissionError(errno.EACCES, "Permission denied", "results")
    with pytest.raises(FileNotFoundError), in_a_sentence():
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "x")
