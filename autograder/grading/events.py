"""The logs of a run: a line of JSON for each event, and nbgrader's own words."""

import contextlib
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.grading.writing import append, lines_of


class JsonLog:
    """A file with one JSON object a line, for programs to read; every run adds to it."""

    def __init__(self, path: Path):
        """Name the file; it is made with the first event."""
        self.path = path

    def write(self, event: str, **fields: Any) -> None:
        """Add one event with the time."""
        line = {"time": datetime.now().astimezone().isoformat(timespec="milliseconds"), "event": event, **fields}
        append(self.path, json.dumps(line, ensure_ascii=False) + "\n")


def last_event(path: Path, event: str) -> dict[str, Any]:
    """Return the last event of a kind in a log, if it belongs to the log's last run; else an empty one."""
    if not path.is_file():
        return {}
    found: dict[str, Any] = {}
    for line in lines_of(path):
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # cut short by a kill
        if entry.get("event") == "start":
            found = {}
        elif entry.get("event") == event:
            found = entry
    return found


def run_log(chapter: str) -> logging.Logger:
    """Return the log of one run: nbgrader's words go to a file, not to the terminal."""
    log = logging.Logger(f"course.grade.{chapter}", level=logging.INFO)
    log.addHandler(logging.NullHandler())
    return log


class QuietFile(logging.FileHandler):
    """A log file that does without a line for which there is no room; what matters is told elsewhere."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's own name
        """Print nothing."""


@contextmanager
def words_of_nbgrader(log: logging.Logger, path: Path) -> Iterator[None]:
    """Keep what is logged in this run in a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = QuietFile(path, mode="w", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        with contextlib.suppress(OSError):  # no room for the last words
            handler.close()
