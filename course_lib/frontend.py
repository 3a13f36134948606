"""Tell whether somebody can see and move things: a notebook's front end, not a script and not a grader."""

import os

from IPython.core.getipython import get_ipython


def interactive() -> bool:
    """Say whether a widget would reach a reader.

    True in a Jupyter kernel, unless nbgrader runs it. A terminal, a script and a test have nobody to move a
    slider, so they get still pictures and plain lines.
    """
    shell = get_ipython()
    grading = os.environ.get("NBGRADER_EXECUTION", "").strip() not in ("", "0")
    return not grading and getattr(shell, "kernel", None) is not None
