"""Reads a chapter source (percent format) into cells with roles, and refuses what means nothing."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import yaml

from autograder.authoring.roles import MARKS, SOLUTION_MARKS, STARTER_MARKS, BuildError, Options, check_options

HEADER_KEYS = ("title",)
CELL_MARKER = re.compile(r"^# ?%%", re.MULTILINE)
UNREADABLE = "incorrectly_encoded_metadata"  # jupytext's word for a cell marker that it could not read
OURS_TO_DROP = ("lines_to_next_cell", "cell_marker")  # jupytext's notes about blank lines and quotes


@dataclass(frozen=True)
class SourceCell:
    """One cell of a chapter source."""

    where: str  # file, cell and line, as a message begins
    cell_type: str
    text: str
    role: str | None
    exercise: str | None
    options: Options

    @property
    def points(self) -> int:
        """Return the points that the cell brings, 0 where none are set."""
        return self.options.get("points", 0)


@dataclass(frozen=True)
class ChapterSource:
    """A chapter as its author wrote it."""

    name: str
    path: str  # from the course folder, for messages
    title: str | None
    cells: tuple[SourceCell, ...]

    def exercises(self) -> dict[str, dict[str, list[SourceCell]]]:
        """Group the cells of each exercise by role, in the order of the chapter."""
        found: dict[str, dict[str, list[SourceCell]]] = {}
        for cell in self.cells:
            if cell.exercise and cell.role:
                found.setdefault(cell.exercise, {}).setdefault(cell.role, []).append(cell)
        return found


def read_chapter(path: Path) -> ChapterSource:
    """Read a chapter source.

    Raises:
        BuildError: the file cannot be read, or a cell carries a role or key that means nothing.
    """
    shown = f"{path.parent.name}/{path.name}"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"{shown} cannot be read as UTF-8 text: {error}.") from error
    notebook = jupytext.reads(text, fmt="py:percent")
    raw_cells = list(notebook.cells)
    header = {key: value for key, value in notebook.metadata.items() if key not in ("jupytext", "kernelspec")}
    if raw_cells and raw_cells[0].cell_type == "raw" and raw_cells[0].source.startswith("---"):
        header |= _read_header(shown, raw_cells.pop(0).source)
    for key in header:
        if key not in HEADER_KEYS:
            raise BuildError(f"{shown}: the header's key {key!r} is unknown; allowed: {', '.join(HEADER_KEYS)}.")
    places = _places(shown, text, len(raw_cells))
    cells = tuple(_read_cell(where, cell) for where, cell in zip(places, raw_cells, strict=True))
    return ChapterSource(path.stem, shown, header.get("title"), cells)


def _read_header(shown: str, source: str) -> dict[str, Any]:
    try:
        header = yaml.safe_load(source.strip().strip("-"))
    except yaml.YAMLError as error:
        raise BuildError(f"{shown}: the header between the lines of --- is not YAML: {error}.") from error
    if not isinstance(header, dict):
        raise BuildError(f"{shown}: the header must be lines of the form `title: Attention`.")
    return header


def _places(shown: str, text: str, count: int) -> list[str]:
    lines = [text.count("\n", 0, marker.start()) + 1 for marker in CELL_MARKER.finditer(text)]
    if len(lines) != count:  # a first cell without a marker shifts the numbers, so lines would mislead
        return [f"{shown}, cell {number}" for number in range(1, count + 1)]
    return [f"{shown}, cell {number} (line {line})" for number, line in enumerate(lines, start=1)]


def _read_cell(where: str, cell: Any) -> SourceCell:
    options = {key: value for key, value in cell.metadata.items() if key not in OURS_TO_DROP}
    if UNREADABLE in options:
        raise BuildError(
            f"{where}: {options[UNREADABLE]!r} cannot be read; write a marker as "
            '# %% exercise="softmax" points=1 role="test".'
        )
    if cell.cell_type == "raw":
        raise BuildError(f"{where}: raw cells are not shown to a student; use [markdown].")
    check_options(where, cell.cell_type, options)
    role, exercise = options.pop("role", None), options.pop("exercise", None)
    text = "\n".join(line.rstrip() for line in cell.source.strip("\n").split("\n"))
    _check_marks(where, role, text)
    return SourceCell(where, cell.cell_type, text, role, exercise, options)


def _check_marks(where: str, role: str | None, text: str) -> None:
    """Refuse nbgrader's marks where they would break the release or let a secret through."""
    meant = (*SOLUTION_MARKS, *STARTER_MARKS) if role == "answer" else ()
    for mark in MARKS:
        if mark in text and mark not in meant:
            place = "an answer cell" if mark in (*SOLUTION_MARKS, *STARTER_MARKS) else "no source cell"
            raise BuildError(
                f"{where}: the words {mark} may stand in {place} alone, since nbgrader acts on them anywhere."
            )
    if role == "answer":
        _check_regions(where, text)


def _check_regions(where: str, text: str) -> None:
    """See that an answer has one solution region, and at most one starter directly behind it."""
    lines = text.split("\n")
    found = [(mark, line) for line in lines for mark in (*SOLUTION_MARKS, *STARTER_MARKS) if mark in line]
    order = tuple(mark for mark, _ in found)
    if not order:
        raise BuildError(f"{where}: an answer needs # BEGIN SOLUTION and # END SOLUTION around what to hide.")
    if order not in (SOLUTION_MARKS, SOLUTION_MARKS + STARTER_MARKS):
        raise BuildError(
            f"{where}: an answer has one region from # BEGIN SOLUTION to # END SOLUTION, which a region from "
            f"# BEGIN STARTER to # END STARTER may follow; here are {', '.join(order)}."
        )
    indents = set()
    for mark, line in found:
        if line.strip() != f"# {mark}":
            raise BuildError(f"{where}: write the mark alone on its line as `# {mark}`, not {line.strip()!r}.")
        indents.add(line[: len(line) - len(line.lstrip())])
    if len(indents) > 1:
        raise BuildError(f"{where}: the marks of one answer must be indented alike.")
    if STARTER_MARKS[0] in order:
        _check_starter(where, lines, indents.pop())


def _check_starter(where: str, lines: list[str], indent: str) -> None:
    end, begin, last = (lines.index(f"{indent}# {mark}") for mark in (SOLUTION_MARKS[1], *STARTER_MARKS))
    if begin != end + 1:
        raise BuildError(f"{where}: # BEGIN STARTER must stand on the line after # END SOLUTION.")
    if begin + 1 == last:
        raise BuildError(f"{where}: the starter between its marks is empty.")
    for line in lines[begin + 1 : last]:
        if line != f"{indent}#" and not line.startswith(f"{indent}# "):
            raise BuildError(f"{where}: each line of a starter begins with '# ' at the marks' indent, not {line!r}.")
