"""Odd files and folders: encodings, formats, names, and what lies beside the notebook."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from autograder.grading.field_reports.report import NOTEBOOK
from autograder.grading.submissions import LARGEST_NOTEBOOK, TIMESTAMP

Lay = Callable[[Path], None]
ENDLESS_BYTES = 2**30
HELPER = b"def double(x):\n    return 2 * x\n"


def as_utf16(text: str) -> bytes:
    """Save as UTF-16."""
    return text.encode("utf-16")


def with_mark(text: str) -> bytes:
    """Save as UTF-8 with a byte-order mark."""
    return text.encode("utf-8-sig")


def as_latin1(text: str) -> bytes:
    """Save as Latin-1."""
    return text.encode("latin-1")


def with_windows_line_ends(text: str) -> bytes:
    """Save every line of every cell with the line end of Windows."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n") + "\r\n"
    return json.dumps(notebook).encode()


def minor_4_with_ids(text: str) -> bytes:
    """Claim a format that knows no ids, and keep them."""
    return json.dumps(json.loads(text) | {"nbformat_minor": 4}).encode()


def as_format_3(text: str) -> bytes:
    """Save in the format before the last, which had worksheets."""
    cells = []
    for cell in json.loads(text)["cells"]:
        entry = {"cell_type": cell["cell_type"], "metadata": cell["metadata"]}
        if cell["cell_type"] == "code":
            code = {"input": cell["source"], "outputs": [], "language": "python", "collapsed": False}
            cells.append(entry | code)
        else:
            cells.append(entry | {"source": cell["source"]})
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": [{"cells": cells}]}
    return json.dumps(old).encode()


def cut_short(text: str) -> bytes:
    """Save the first half."""
    return text.encode()[: len(text) // 2]


def called(name: str) -> Lay:
    """Give the notebook another name."""

    def lay(folder: Path) -> None:
        (folder / NOTEBOOK).rename(folder / name)

    return lay


def twice_under_other_names(folder: Path) -> None:
    """Hand the same notebook in twice, under names that are both not the chapter's."""
    data = (folder / NOTEBOOK).read_bytes()
    (folder / NOTEBOOK).unlink()
    for name in ("first.ipynb", "final.ipynb"):
        (folder / name).write_bytes(data)


def beside(name: str, content: bytes | None = None) -> Lay:
    """Lay another file beside the notebook: this content, or a copy of the notebook."""

    def lay(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((folder / NOTEBOOK).read_bytes() if content is None else content)

    return lay


def mac_clutter(folder: Path) -> None:
    """Lay beside the notebook what a Mac packs into archives."""
    for name in (f"__MACOSX/._{NOTEBOOK}", f"._{NOTEBOOK}", ".DS_Store"):
        beside(name, b"\0\5\x16\7\0\2\0\0Mac OS X")(folder)


def endless_file(folder: Path) -> None:
    """Lay a file beside the notebook that is larger than any that is taken, without filling the disk."""
    (folder / "data.bin").touch()
    os.truncate(folder / "data.bin", ENDLESS_BYTES)


def endless_notebook(folder: Path) -> None:
    """Make the notebook larger than any that is read, without filling the disk."""
    os.truncate(folder / NOTEBOOK, LARGEST_NOTEBOOK + 2**20)


def stamped(text: str) -> Lay:
    """Say in timestamp.txt when it was handed in."""

    def lay(folder: Path) -> None:
        (folder / TIMESTAMP).write_text(text, encoding="utf-8")

    return lay


def read_only(folder: Path) -> None:
    """Let nobody write to the files and the folder."""
    (folder / NOTEBOOK).chmod(0o400)
    folder.chmod(0o500)
