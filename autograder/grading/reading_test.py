"""A submitted file cannot fill the memory of the grader, and a large but honest one is read."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from autograder.grading import reading
from autograder.grading.reading import UnreadableError, read_notebook

MEGABYTE = 2**20
LARGE = 60 * MEGABYTE
BOMBS = {"lists": "[],", "objects": "{},", "numbers": "999,", "texts": '"ab",', "named": '{"a":[]},'}
MOST_GROWTH_MB = 250  # of the process, beside the file itself
MEASURE = """
import resource, sys
from autograder.grading.reading import UnreadableError, read_notebook
piece, size = sys.argv[1].encode(), int(sys.argv[2])
data = b'{"cells":[' + piece * (size // len(piece)) + b'0]}'
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
try:
    read_notebook(data, "a.ipynb")
except UnreadableError as error:
    print(peak() - before, error)
"""


def notebook(text: str, cells: int = 1) -> bytes:
    """Return a notebook whose cells showed a text."""
    output = {"output_type": "stream", "name": "stdout", "text": text}
    return json.dumps({"cells": [{"cell_type": "code", "source": "1", "outputs": [output]}] * cells}).encode()


@pytest.mark.parametrize("piece", BOMBS.values(), ids=BOMBS)
def test_a_file_of_very_many_pieces_is_refused_in_one_sentence_and_little_memory(piece: str) -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE, piece, str(LARGE)], capture_output=True, text=True)
    grown, said = done.stdout.split(maxsplit=1)
    assert int(grown) < MOST_GROWTH_MB, done.stderr
    assert said.strip() == "a.ipynb is not read: it is made of more than 4,000,000 pieces of data."


@pytest.mark.parametrize("text", ["x" * LARGE, '[1, {2}, "3"]\n' * (LARGE // 20)], ids=["one line", "numbers"])
def test_a_notebook_with_much_output_is_read(text: str) -> None:
    data = notebook(text)
    assert len(data) > LARGE * 0.7
    assert read_notebook(data, "a.ipynb")[0].cells[0].source == "1"


def test_what_stands_in_texts_is_no_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_PIECES", 40)
    assert not reading.has_too_many_pieces(notebook('\\"[{,' * 100))
    assert reading.has_too_many_pieces(notebook("x", cells=5))
    assert reading.has_too_many_pieces(b'["\\\\"' + b",[" * 50)
    assert reading.has_too_many_pieces(notebook("[" * 100).decode().encode("utf-16"))
    assert not reading.has_too_many_pieces(notebook("x").decode().encode("utf-16"))


def test_too_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_CELLS", 3)
    assert len(read_notebook(notebook("x", 3), "a.ipynb")[0].cells) == 3
    with pytest.raises(UnreadableError, match=re.escape("it has 4 cells; at most 3 are read")):
        read_notebook(notebook("x", 4), "a.ipynb")


def test_a_large_notebook_in_an_old_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"metadata": {}, "cells": []}]}
    assert read_notebook(json.dumps(old).encode(), "a.ipynb")[0].cells == []
    monkeypatch.setattr(reading, "MOST_OLD_OBJECTS", 3)
    with pytest.raises(UnreadableError, match="too large to be converted"):
        read_notebook(json.dumps(old).encode(), "a.ipynb")


def test_very_many_attachments_are_left_out() -> None:
    cell = {"cell_type": "markdown", "source": "1", "attachments": {}}
    for count, kept in ((reading.MOST_ATTACHMENTS, True), (reading.MOST_ATTACHMENTS + 1, False)):
        cell["attachments"] = {f"{number}.png": {"image/png": "x"} for number in range(count)}
        found = read_notebook(json.dumps({"cells": [cell]}).encode(), "a.ipynb")[0].cells[0]
        assert ("attachments" in found) == kept
