"""README's lines about the speed of attention, from the stored run: a GPU's where there is one, else a CPU's."""

from pathlib import Path
from typing import Any

from course_lib import results

BEGIN, END = "<!-- attention:begin -->", "<!-- attention:end -->"
RUNS = ("attention_gpu", "attention_cpu")  # the first one that is there is quoted
MILLISECONDS, MEBIBYTE = 1000, 2**20


def stored_run() -> dict[str, Any]:
    """Return the run that is quoted."""
    return results.load(next(name for name in RUNS if results.path_of(name).is_file()))


def table(run: dict[str, Any]) -> str:
    """Return a Markdown table of the longest length's forward passes in the run's first dtype."""
    rows = [row for row in run["rows"] if row["pass"] == "forward" and row["dtype"] == run["rows"][0]["dtype"]]
    length = max(row["length"] for row in rows)
    lines = [
        f"On {run['device']}, n = {length}, {rows[0]['dtype']}, forward:",
        "",
        "| form | ms | MiB |",
        "|---|---:|---:|",
    ]
    for row in rows:
        if row["length"] == length and row["seconds"]:
            peak = "–" if row["peak_bytes"] is None else f"{row['peak_bytes'] / MEBIBYTE:.1f}"
            lines.append(f"| {row['form']} | {row['seconds'] * MILLISECONDS:.3g} | {peak} |")
    return "\n".join(lines)


def write_lines(readme: Path) -> bool:
    """Bring README's lines up to the stored run; return whether they changed."""
    text = readme.read_text(encoding="utf-8")
    renewed = with_lines(text, stored_run())
    if renewed != text:
        readme.write_text(renewed, encoding="utf-8", newline="\n")
    return renewed != text


def with_lines(text: str, run: dict[str, Any]) -> str:
    """Return README's text with the lines of a run between its two marks; a text without marks stays."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n{table(run)}\n{end}{after}" if end else text
