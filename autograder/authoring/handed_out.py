"""Notes in a student's notebook how each cell was handed out, so that an update can tell whose change it meets."""

import hashlib
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

KEY = "handed_out"  # in the notebook's metadata: a fingerprint of the text by cell id
DIGITS = 8


def fingerprint(source: str) -> str:
    """Return a short fingerprint of a cell's text."""
    return hashlib.sha256(source.encode()).hexdigest()[:DIGITS]


def note_what_is_handed_out(notebook: NotebookNode) -> None:
    """Note a fingerprint of every cell that nbgrader does not watch itself."""
    notebook.metadata[KEY] = {
        cell.id: fingerprint(cell.source) for cell in notebook.cells if "nbgrader" not in cell.metadata
    }


class NoteWhatIsHandedOut(NbGraderPreprocessor):
    """The last step of nbgrader's release."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Note the fingerprints of one notebook."""
        note_what_is_handed_out(nb)
        return nb, resources


def as_handed_out(notebook: NotebookNode) -> dict[str, str]:
    """Return the fingerprints of a student's notebook; none for one that was made before there were any."""
    noted = notebook.metadata.get(KEY, {})
    return dict(noted) if isinstance(noted, dict) else {}
