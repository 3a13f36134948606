"""Measures what a learner waits for in JupyterLab, and how much memory the server and its kernels take."""

import threading
import time
from dataclasses import dataclass
from types import TracebackType

import psutil
from nbformat import NotebookNode
from playwright.sync_api import Page

from autograder.browser.lab import Lab
from autograder.browser.page import NotebookPage

SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class Opening:
    """Seconds from asking for a notebook's address.

    Args:
        interactive: Until the notebook is shown and its kernel is connected and idle: cells can be edited and run.
        first_cell: Until the first code cell, run at once, has ended and shows what it has to show.
    """

    interactive: float
    first_cell: float


def time_opening(page: Page, lab: Lab, path: str, first_code: int) -> Opening:
    """Open a notebook as a learner does and run its first code cell.

    Args:
        page: A page that has nothing of this server open.
        lab: The server.
        path: The notebook, from the server's root.
        first_code: The place of its first code cell.
    """
    began = time.monotonic()
    notebook = NotebookPage.open(page, lab, path)
    notebook.wait_for_connection()
    interactive = time.monotonic() - began
    notebook.run(first_code)
    return Opening(interactive, time.monotonic() - began)


def memory_of_tree(pid: int) -> int:
    """Return the bytes that a process and all that it started take.

    That is what each has for itself and, once, the largest part that one of them shares, such as libraries: the same
    whether or not others on the machine have the libraries loaded too.
    """
    try:
        tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    found = list(map(memory_of, tree))
    return sum(own for own, _ in found) + max(shared for _, shared in found)


def memory_of(process: psutil.Process) -> tuple[int, int]:
    """Return one process's bytes: its own, and those that it shares; none for one that has ended."""
    try:
        found = process.memory_full_info()
    except psutil.Error:
        return 0, 0
    return found.uss, max(0, found.rss - found.uss)


class PeakMemory:
    """Watches a process and all that it starts until the block ends; `bytes` is the most that was seen."""

    def __init__(self, pid: int):
        """Note whom to watch."""
        self.pid, self.bytes = pid, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self) -> None:
        """Look again and again."""
        while not self.over.is_set():
            self.bytes = max(self.bytes, memory_of_tree(self.pid))
            self.over.wait(SAMPLE_SECONDS)

    def __enter__(self) -> "PeakMemory":
        """Begin to watch."""
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching."""
        self.over.set()
        self.thread.join()


def peak_of_chapter(page: Page, lab: Lab, path: str, chapter: NotebookNode) -> int:
    """Open a notebook, run all of it, and return the most bytes that server and kernels took meanwhile.

    Args:
        page: A fresh page.
        lab: The server.
        path: The notebook, from the server's root.
        chapter: The same notebook as nbformat reads it.
    """
    with PeakMemory(lab.pid) as peak:
        notebook = NotebookPage.open(page, lab, path)
        notebook.wait_for_cells(len(chapter.cells))
        notebook.wait_for_connection()
        notebook.run_all(code_cells(chapter))
    return peak.bytes


def code_cells(notebook: NotebookNode) -> list[int]:
    """Return the places of the cells that run."""
    return [index for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
