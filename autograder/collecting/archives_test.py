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


BAD_ARCHIVES = {
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
