"""An archive that cannot be trusted, or read, is refused in a sentence before anything is unpacked."""

from pathlib import Path

import pytest

from autograder.collecting.archives import opened
from autograder.collecting.packing import packed
from autograder.errors import CourseError


def test_a_bomb_of_two_gigabytes_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "bomb.zip", {"ada1/zeros.bin": b"\0" * 1000})
    data = bytearray(path.read_bytes())
    claimed = (3 * 2**30).to_bytes(4, "little")
    place = data.rindex(b"ada1/zeros.bin") - 22  # the uncompressed size in the directory at the end
    data[place : place + 4] = claimed
    path.write_bytes(bytes(data))
    with pytest.raises(CourseError, match="would unpack to 3,072 MB"), opened(path):
        pass


def encrypted(path: Path) -> Path:
    """Write an archive whose entry says that it needs a password."""
    packed(path, {"ada1/notebook.ipynb": "a"})
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    path.write_bytes(bytes(data))
    return path


def of_a_later_zip(path: Path) -> Path:
    """Write an archive that asks for a newer way of unpacking than there is."""
    data = bytearray(packed(path, {"ada1/notebook.ipynb": "a"}).read_bytes())
    data[data.index(b"PK\x01\x02") + 6] = 200  # the version of the format that is needed, times ten
    path.write_bytes(bytes(data))
    return path


BAD_ARCHIVES = {
    "of the future": (of_a_later_zip, "is no zip archive, or is damaged"),
    "no such file": (lambda path: path, "There is no archive"),
    "empty": (lambda path: packed(path, {}), "holds no file"),
    "only clutter": (lambda path: packed(path, {"__MACOSX/._x": "x"}), "holds no file"),
    "damaged": (lambda path: path.write_bytes(b"PK nonsense") and path, "is no zip archive, or is damaged"),
    "password": (encrypted, "protected by a password"),
}


@pytest.mark.parametrize("kind", BAD_ARCHIVES)
def test_a_bad_archive_is_one_sentence(kind: str, tmp_path: Path) -> None:
    make, words = BAD_ARCHIVES[kind]
    with pytest.raises(CourseError, match=words) as caught, opened(make(tmp_path / "bad.zip")):
        pass
    assert "\n" not in str(caught.value)


def test_a_stream_that_is_damaged_is_one_sentence(tmp_path: Path) -> None:
    path = packed(tmp_path / "damaged.zip", {"ada1/a.ipynb": "abcdefgh" * 5000})
    data = bytearray(path.read_bytes())
    start = data.index(b"a.ipynb") + len(b"a.ipynb")
    data[start : start + 8] = b"\xff" * 8
    path.write_bytes(bytes(data))
    with opened(path) as found, pytest.raises(CourseError, match="is damaged in the archive"):
        found.files[0].read()


def test_a_way_of_packing_that_python_cannot_read_is_one_sentence(tmp_path: Path) -> None:
    path = packed(tmp_path / "odd.zip", {"ada1/a.ipynb": "abcdefgh"})
    data = bytearray(path.read_bytes())
    deflate64 = (9).to_bytes(2, "little")
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = data.index(mark) + offset
        data[place : place + 2] = deflate64
    path.write_bytes(bytes(data))
    with opened(path) as found, pytest.raises(CourseError, match="unpack the archive and give the folder"):
        found.files[0].read()
