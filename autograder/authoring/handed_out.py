"""Notes in a student's notebook how each cell was handed out, so that an update can tell whose change it meets."""

import hashlib

import nbformat
from nbformat import NotebookNode

from autograder.authoring.release import write_notebook

KEY = "handed_out"  # in the notebook's metadata: a fingerprint of the text by cell id
DIGITS = 8


def fingerprint(source: str) -> str:
    """Return a short fingerprint of a cell's text."""
    return hashlib.sha256(source.encode()).hexdigest()[:DIGITS]


def note_what_is_handed_out(text: str) -> str:
    """Return a notebook's text with a fingerprint of every cell that nbgrader does not watch itself."""
    notebook = nbformat.reads(text, as_version=4)
    notebook.metadata[KEY] = {
        cell.id: fingerprint(cell.source) for cell in notebook.cells if "nbgrader" not in cell.metadata
    }
    return write_notebook(notebook)


def as_handed_out(notebook: NotebookNode) -> dict[str, str]:
    """Return the fingerprints of a student's notebook; none for one that was made before there were any."""
    noted = notebook.metadata.get(KEY, {})
    return dict(noted) if isinstance(noted, dict) else {}
