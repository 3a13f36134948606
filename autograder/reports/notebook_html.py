"""Show a graded notebook's cells as HTML in which nothing of a student's can act."""

import base64
import html
import re
from collections.abc import Iterator
from functools import lru_cache

from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from autograder.grading.verdicts import VERDICT_TYPE
from autograder.reports.safe_html import SHARED_CELLS, markdown_html, output_html

CODE = HtmlFormatter(nowrap=True)
LONGEST_OUTPUT = 20_000  # characters of one output; the notebook itself has the rest
COLOR_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
MARKS_OF_HIDDEN_TESTS = re.compile(r"(?m)^### (?:BEGIN|END) HIDDEN TESTS$\n?")  # nbgrader's, of no use to a reader
CHECK_FAILED = "CheckFailed"  # its words begin with the exercise's name and need no other
PICTURES = ("image/png", "image/jpeg", "image/svg+xml")


def cell_html(cell: NotebookNode) -> str:
    """Return one cell: prose, code with what it printed, or raw text."""
    if cell.cell_type == "markdown":
        return f'<div class="prose">{markdown_html(cell.source)}</div>'
    if cell.cell_type != "code":
        return preformatted(cell.source, "raw")
    return f"{code_html(cell.source)}{''.join(outputs_html(cell))}"


@lru_cache(maxsize=SHARED_CELLS)
def code_html(source: str) -> str:
    """Return code in colors, which tell nothing that the code does not."""
    code = highlight(MARKS_OF_HIDDEN_TESTS.sub("", source), PythonLexer(stripnl=False), CODE)
    return f'<pre class="code" tabindex="0"><code>{code}</code></pre>'


def outputs_html(cell: NotebookNode) -> Iterator[str]:
    """Yield what a code cell printed, showed or raised."""
    outputs = cell.get("outputs", [])
    told = any(output.output_type == "error" and output.ename == CHECK_FAILED for output in outputs)
    for output in outputs:
        if told and VERDICT_TYPE in output.get("data", {}):
            continue  # the error that follows says the same, and more
        if output.output_type == "stream":
            yield preformatted(output.text, "error output" if output.name == "stderr" else "output")
        elif output.output_type == "error":
            name = "" if output.ename == CHECK_FAILED else f"{output.ename}: "
            yield preformatted(f"{name}{output.evalue}", "error output")
        else:
            yield shown_html(output.get("data", {}))


def shown_html(data: dict) -> str:
    """Return the richest form of a displayed object that is harmless."""
    plain = as_text(data.get("text/plain", ""))
    if "text/html" in data:
        return f'<div class="output shown">{output_html(as_text(data["text/html"]))}</div>'
    for kind in PICTURES:
        if kind in data:
            return f'<div class="output shown">{picture(kind, as_text(data[kind]), plain)}</div>'
    if "text/markdown" in data:
        return f'<div class="output shown">{markdown_html(as_text(data["text/markdown"]))}</div>'
    return preformatted(plain, "output") if plain else ""


def picture(kind: str, content: str, words: str) -> str:
    """Return a picture inside an `img`, where a drawing's scripts do not run."""
    data = base64.b64encode(content.encode()).decode() if kind == "image/svg+xml" else "".join(content.split())
    return f'<img alt="{html.escape(words)}" src="data:{kind};base64,{html.escape(data)}">'


def preformatted(text: str, kind: str) -> str:
    """Return text as it is, without colors and not too long."""
    text = COLOR_CODE.sub("", text)
    cut = text if len(text) <= LONGEST_OUTPUT else f"{text[:LONGEST_OUTPUT]}\n… (cut here)"
    return f'<pre class="{kind}" tabindex="0">{html.escape(cut)}</pre>'


def as_text(value: object) -> str:
    """Return a field of an output that may be a list of lines."""
    return "".join(map(str, value)) if isinstance(value, list) else str(value)
