"""Read a submitted file as a notebook, whatever program wrote it; keep what a student wrote and drop the rest."""

from __future__ import annotations

import itertools
import json
import re
import threading
from typing import Any

import nbformat
from nbformat import NotebookNode

NEWEST_MINOR = 5
FORMAT_WITH_CELLS = 4
CELL_TYPES = ("code", "markdown", "raw")
CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
MOST_PIECES = 4_000_000  # texts, lists, objects and commas; Python needs up to a hundred bytes for each
MOST_CELLS = 5_000
MOST_ATTACHMENTS = 100  # of one cell
MOST_OLD_OBJECTS = 100_000  # of a notebook in an old format, beside outputs; conversion copies each several times
PIECE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[{,]', re.DOTALL)
FALLBACK_ENCODING = "cp1252"  # what an editor on Windows saves where it is not asked for UTF-8


_one_at_a_time = threading.Lock()  # what a file becomes in memory is many times as large as the file


class UnreadableError(ValueError):
    """The submitted file cannot be read as a notebook; the message is a whole sentence."""


def read_notebook(data: bytes, name: str) -> tuple[NotebookNode, list[str]]:
    """Return the notebook in today's format without outputs, and a sentence for each thing that was mended.

    Args:
        data: The file's content: UTF-8, with or without BOM, UTF-16 or UTF-32, or else a Windows code page.
        name: The file's name, for the message.

    Raises:
        UnreadableError: It is no notebook.
    """
    with _one_at_a_time:
        return _read(data, name)


def _read(data: bytes, name: str) -> tuple[NotebookNode, list[str]]:
    content, repairs = parse(data, name)
    try:
        if content.get("nbformat", FORMAT_WITH_CELLS) < FORMAT_WITH_CELLS:
            content = upgraded(content, name)
            repairs.append("The notebook was in an old format; it was converted.")
        cells = content["cells"]
        if not isinstance(cells, list):
            raise TypeError("its cells are no list")
        if len(cells) > MOST_CELLS:
            raise UnreadableError(f"{name} is not read: it has {len(cells):,} cells; at most {MOST_CELLS:,} are read.")
    except UnreadableError:
        raise
    except RecursionError:
        raise UnreadableError(f"{name} is no notebook: it is nested too deeply.") from None
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise UnreadableError(f"{name} is no notebook: it has no proper list of cells ({what}).") from None
    notebook = nbformat.v4.new_notebook()
    notebook.nbformat_minor = NEWEST_MINOR
    notebook.cells = [clean_cell(cell) for cell in cells if isinstance(cell, dict)]
    repairs += give_ids(notebook)
    return notebook, repairs


def parse(data: bytes, name: str) -> tuple[dict[str, Any], list[str]]:
    """Return the file's JSON object, and what was wrong with its encoding.

    Raises:
        UnreadableError: It is no JSON object, or one of too many pieces.
    """
    repairs: list[str] = []
    if has_too_many_pieces(data):
        raise UnreadableError(f"{name} is not read: it is made of more than {MOST_PIECES:,} pieces of data.")
    try:
        try:
            content = json.loads(data)  # tells UTF-8, UTF-16 and UTF-32 apart by itself
        except UnicodeDecodeError:
            content = json.loads(data.decode(FALLBACK_ENCODING, errors="replace"))
            repairs.append("The file was not saved as UTF-8; letters with accents may be wrong.")
    except (ValueError, RecursionError):
        raise UnreadableError(f"{name} is no notebook: the file is not JSON.") from None
    if not isinstance(content, dict):
        raise UnreadableError(f"{name} is no notebook: the file holds a {type(content).__name__}, not an object.")
    return content, repairs


def has_too_many_pieces(data: bytes) -> bool:
    """Tell whether JSON would fill the memory, before it is parsed: a file of nothing but `[],` grows thirtyfold."""
    if sum(map(data.count, (b"[", b"{", b","))) <= MOST_PIECES:
        return False
    if json.detect_encoding(data) not in ("utf-8", "utf-8-sig"):
        return True  # where its texts begin and end is not seen byte by byte
    return next(itertools.islice(PIECE.finditer(data), MOST_PIECES, None), None) is not None


def upgraded(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a notebook of an old format in today's; outputs go, since grading makes its own.

    Raises:
        UnreadableError: It is too large to be converted.
    """
    for sheet in content.get("worksheets", []):
        for cell in sheet.get("cells", []):
            if "outputs" in cell:
                cell["outputs"] = []
    if json.dumps(content).count("{") > MOST_OLD_OBJECTS:
        raise UnreadableError(f"{name} is not read: it is in an old format, and too large to be converted.")
    return nbformat.convert(nbformat.from_dict(content), FORMAT_WITH_CELLS)  # pyright: ignore[reportReturnType]


def clean_cell(cell: dict[str, Any]) -> NotebookNode:
    """Return the cell with its text, its id and nbgrader's marks."""
    kind = cell.get("cell_type")
    kind = kind if kind in CELL_TYPES else "raw"
    clean = NotebookNode(cell_type=kind, id=cell.get("id"), source=clean_text(cell.get("source")))
    clean.metadata = NotebookNode(clean_metadata(cell.get("metadata")))
    if kind == "code":
        clean.outputs, clean.execution_count = [], None
    elif isinstance(cell.get("attachments"), dict) and all_text(cell["attachments"]):
        clean.attachments = nbformat.from_dict(cell["attachments"])
    return clean


def clean_text(source: Any) -> str:
    """Return a cell's text with one kind of line end, from a string or a list of them."""
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    text = source if isinstance(source, str) else ""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", errors="replace").decode("utf-8")  # half a surrogate pair cannot be written


def clean_metadata(metadata: Any) -> dict[str, Any]:
    """Keep nbgrader's marks if they name a cell; widgets' state, slides and the like are not graded."""
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    if not isinstance(marks, dict) or not isinstance(marks.get("grade_id"), str):
        return {}
    return {"nbgrader": NotebookNode(grade_id=marks["grade_id"])}


def all_text(attachments: dict[Any, Any]) -> bool:
    """Return whether attachments have the form that a notebook may hold, and are not too many."""
    return len(attachments) <= MOST_ATTACHMENTS and all(
        isinstance(bundle, dict) and all(isinstance(text, str) for text in bundle.values())
        for bundle in attachments.values()
    )


def give_ids(notebook: NotebookNode) -> list[str]:
    """Give every cell a valid id of its own; the first of several with one id keeps it."""
    taken: set[str] = set()
    mended = 0
    for position, cell in enumerate(notebook.cells):
        wanted = cell.id
        if not isinstance(wanted, str) or not CELL_ID.fullmatch(wanted) or wanted in taken:
            mended += wanted is not None
            wanted = next(name for name in unused(position) if name not in taken)
        taken.add(wanted)
        cell.id = wanted
    return ["Cells with the same or an invalid id got new ones."] if mended else []


def unused(position: int):
    """Yield names for the cell at a position, the same ones each time."""
    yield f"cell-{position}"
    yield from (f"cell-{position}-{again}" for again in range(2, 2**20))
