"""Keep in a graded notebook what was mended in it and what was missing, for the page that its student gets back."""

import nbformat
from nbformat import NotebookNode

KEY = "grading_notes"


def with_notes(text: str, sentences: list[str]) -> str:
    """Return a notebook's text with these sentences in its metadata, and with no others."""
    if not sentences and KEY not in text:
        return text  # to read it would only cost time
    notebook = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    notebook.metadata.pop(KEY, None)
    if sentences:
        notebook.metadata[KEY] = sentences
    return nbformat.writes(notebook)


def notes_of(notebook: NotebookNode) -> list[str]:
    """Return the sentences that a graded notebook keeps."""
    found = notebook.metadata.get(KEY, [])
    return [sentence for sentence in found if isinstance(sentence, str)] if isinstance(found, list) else []
