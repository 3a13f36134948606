"""A course to attack: its gradebook, sources, students and grader, and probes that find what was done to them."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from nbformat.v4 import new_code_cell, new_notebook

from autograder.grading.attacks.attack import PATIENCE
from autograder.grading.attacks.consuming import THROUGH
from autograder.grading.limits import Limits
from autograder.testing.watching import processes_with, soon

CHAPTER = "01_attention"
SMALL = Limits(memory_mb=500, processes=60, file_mb=2, disk_mb=8, output_bytes=20_000)
SLEEP = "import time; time.sleep(3600)"
ANSWER = """
def softmax(scores):
    top = np.max(scores, axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = powers.sum(-1, keepdims=True)
    return powers / np.where(total == 0, 1, total).astype(scores.dtype)
"""


class Stage:
    """A course folder, a grader's home and process, and a service, each with something to find or to break."""

    def __init__(self, folder: Path):
        """Make them; `close` ends what was started."""
        self.folder, self.secret = folder, f"secret-{secrets.token_hex(8)}"
        self.course, self.home = folder / "course", folder / "home"
        self.home.mkdir(parents=True)
        self._fill()
        self.before = self._files()
        self.grader = self._start_grader()
        self.calls: list[bytes] = []
        self.service = socket.create_server(("127.0.0.1", 0))
        self.port = self.service.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _fill(self) -> None:
        files = {
            "nbgrader_config.py": "c = get_config()\n",
            f"build/source/{CHAPTER}/{CHAPTER}.ipynb": json.dumps(
                new_notebook(cells=[new_code_cell(f"# {self.secret}\n{ANSWER}")])
            ),
        } | {f"{step}/other/{CHAPTER}/{CHAPTER}.ipynb": self.secret for step in ("submitted", "autograded")}
        for name, text in files.items():
            path = self.course / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        book = sqlite3.connect(self.course / "gradebook.db")
        with book:
            book.execute("CREATE TABLE grade (student TEXT, manual_score REAL)")
            book.execute("INSERT INTO grade VALUES ('other', 1.0)")
            book.execute("CREATE TABLE source_cell (source TEXT)")
            book.execute("INSERT INTO source_cell VALUES (?)", (f"assert {self.secret!r}",))
        book.close()

    def _start_grader(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", SLEEP], env={**os.environ, "PASSWORD": self.secret})

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self.service.accept()
            except OSError:
                return
            with line:
                self.calls.append(line.recv(100))
                line.sendall(b"the answers")

    def _files(self) -> dict[str, bytes]:
        found = (path for path in self.folder.rglob("*") if path.is_file() and "work" not in path.parts)
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in found}

    def new_work(self) -> Path:
        """Make a working folder for one submission, where a course has it."""
        work = self.course / "autograded" / "me" / "work" / secrets.token_hex(4)
        work.mkdir(parents=True)
        return work

    def knowledge(self, pool_folder: str, mark: str, seen_seed: int) -> str:
        """Return a cell that defines what the attacker is assumed to know."""
        known: dict[str, Any] = {
            "COURSE": str(self.course),
            "GRADERS_HOME": str(self.home),
            "GRADER": self.grader.pid,
            "PORT": self.port,
            "POOL": pool_folder,
            "MARK": mark,
            "SEEN_SEED": seen_seed,
        }
        return "\n".join(f"{name} = {value!r}" for name, value in known.items())

    def harm(self, shown: str, mark: str, hidden_words: tuple[str, ...]) -> list[str]:
        """Return the harm that was done, and mend it for the next attack.

        Args:
            shown: All that the notebook's cells showed.
            mark: What the attack's processes can be known by.
            hidden_words: What nobody may read, beside this course's own secret.
        """
        after = self._files()
        changed = {name for name in {*after, *self.before} if after.get(name) != self.before.get(name)}
        others = {name for name in changed if not name.startswith("home/") and "gradebook.db" not in name}
        found = {
            "secret read": any(word in shown for word in (self.secret, *hidden_words)),
            "gradebook": any("gradebook.db" in name for name in changed),
            "others' files": bool(others),
            "home": any(name.startswith("home/") for name in changed),
            "process left": not soon(lambda: not processes_with(mark), PATIENCE / 3),
            "connection": bool(self.calls),
            "grader": self.grader.poll() is not None,
            "limit": THROUGH in shown or len(shown) > 2 * SMALL.output_bytes,
        }
        self._mend(changed)
        return [name for name, done in found.items() if done]

    def _mend(self, changed: set[str]) -> None:
        for name in changed:
            if name in self.before:
                (self.folder / name).write_bytes(self.before[name])
            else:
                (self.folder / name).unlink(missing_ok=True)
        self.calls.clear()
        if self.grader.poll() is not None:
            self.grader = self._start_grader()

    def close(self) -> None:
        """End the service and the grader's process."""
        self.service.close()
        self.grader.kill()
        self.grader.wait()
