"""What a run has done so far, safe against a kill: a journal line per submission, gathered into the results file.

`results/CHAPTER.json` is for everybody to read. Beside it, `.CHAPTER.keys.json` holds the key under which each
submission was graded, and `.CHAPTER.journal.jsonl` the submissions since both were written.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from autograder.grading.results import (
    ClassResult,
    StudentResult,
    read_results,
    results_path,
    student_from,
    write_results,
)
from autograder.grading.writing import append, lines_of, put

SECONDS_BETWEEN_FILES = 5.0


class Ledger:
    """The results of one chapter with their keys."""

    def __init__(self, course: Path, chapter: str, clock: Callable[[], float] = time.monotonic):
        """Read what earlier runs left, also one that was killed.

        Raises:
            CourseError: The results file is damaged.
        """
        self.course, self.clock = course, clock
        path = results_path(course, chapter)
        self.keys_path = path.with_name(f".{chapter}.keys.json")
        self.journal_path = path.with_name(f".{chapter}.journal.jsonl")
        self.result: ClassResult = read_results(course, chapter)
        stored = read_json(self.keys_path)
        self.registered: str = str(stored.get("registered", ""))
        self.keys: dict[str, str] = dict(stored.get("keys", {}))
        self.pages: dict[str, str] = dict(stored.get("pages", {}))
        self._replay()
        self._written = self.clock()

    def _replay(self) -> None:
        """Take over the journal of a run that did not come to its end; a line cut short is not there."""
        if not self.journal_path.is_file():
            return
        for line in lines_of(self.journal_path):
            try:
                entry = json.loads(line)
                self.result.students[entry["student"]] = student_from(entry["result"])
                self.keys[entry["student"]] = entry["key"]
            except (ValueError, KeyError, TypeError):
                break

    def record(self, student: str, key: str, result: StudentResult) -> None:
        """Keep one submission's result for good.

        Args:
            student: Whose it is.
            key: What the result depends on; empty if it is to be graded again in any case.
            result: The result.
        """
        entry = {"student": student, "key": key, "result": asdict(result)}
        append(self.journal_path, json.dumps(entry, ensure_ascii=False) + "\n")
        self.result.students[student], self.keys[student] = result, key
        if self.clock() - self._written > SECONDS_BETWEEN_FILES:
            self.write()

    def keep_only(self, students: Iterable[str]) -> None:
        """Forget students whose submission is gone, and put the others in the order of their names."""
        present = set(students)
        self.result.students = {
            name: self.result.students[name] for name in sorted(self.result.students) if name in present
        }
        self.keys = {name: key for name, key in sorted(self.keys.items()) if name in present}
        self.pages = {name: key for name, key in sorted(self.pages.items()) if name in present}

    def write(self) -> None:
        """Write results and keys; only then may the journal go."""
        write_results(self.course, self.result)
        content = {"registered": self.registered, "keys": self.keys, "pages": self.pages}
        put(self.keys_path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode("utf-8"))
        self.journal_path.unlink(missing_ok=True)
        self._written = self.clock()


def read_json(path: Path) -> dict:
    """Return a file's JSON object; an empty one when there is no such file or no such object in it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
