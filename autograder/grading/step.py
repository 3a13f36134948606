"""Grade one submission: bytes in, result out; no gradebook, no file of the course, nothing kept for the next."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import LimitOutput
from nbgrader.utils import compute_checksum

from autograder.grading.cells import GradedCell, grade_id
from autograder.grading.keys import grading_key
from autograder.grading.kit import ChapterKit
from autograder.grading.overwriting import overwrite_cells
from autograder.grading.reading import UnreadableError, read_notebook
from autograder.grading.repair import repair_cells
from autograder.grading.results import ExerciseResult, StudentResult, overall_status
from autograder.grading.running import NotebookRun, Terms
from autograder.grading.verdicts import Score, exercise_results, quote

if TYPE_CHECKING:
    from autograder.grading.session import KernelSession

AUTOGRADE = {"NBGRADER_EXECUTION": "autograde"}  # what nbgrader tells a notebook that it grades
MILLISECOND_DIGITS = 3


class Kernels(Protocol):
    """Where one-shot kernels come from; `KernelPool` is one."""

    @property
    def folder(self) -> str:
        """Return a folder for temporary files."""
        ...

    def kernel(self, work: Any, *arguments: Any, **options: Any) -> AbstractContextManager[KernelSession]:
        """Give a fresh kernel."""
        ...


@dataclass
class Graded:
    """What grading one submission gave.

    Args:
        result: Status, repairs, and the exercises.
        scores: The automatic points by grade_id; None where a person decides. Empty when it failed.
        unanswered: The answer cells that are as they were handed out, by grade_id; None if nbgrader noted them.
        notebook: The graded notebook's text, or None when it failed.
        seconds: How the time was spent.
        slow_cells: Seconds of cells that took long and are no tests.
    """

    result: StudentResult
    scores: dict[str, float | None] = field(default_factory=dict)
    unanswered: list[str] | None = field(default_factory=list)
    notebook: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    slow_cells: dict[str, float] = field(default_factory=dict)


def grade_submission(
    data: bytes, kit: ChapterKit, pool: Kernels, terms: Terms, files: Mapping[str, bytes] | None = None
) -> Graded:
    """Read, repair, run and score one submission.

    Args:
        data: The submitted notebook.
        kit: The chapter.
        pool: Gives the kernel.
        terms: For whom, and within which limits.
        files: Other files that the student handed in beside the notebook, by their relative path.

    Raises:
        SandboxError: No kernel could be started, which is not the student's fault.
    """
    clock = Clock()
    terms = replace(terms, work=work_key(data, files or {}))
    try:
        notebook, repairs = read_notebook(data, f"{kit.chapter}.ipynb")
    except UnreadableError as error:
        return failed(kit, str(error))
    repairs += repair_cells(notebook, kit.source)
    repairs += overwrite_cells(notebook, kit)
    notebook.metadata = nbformat.from_dict(dict(kit.source.metadata))
    clock.lap("read")
    with tempfile.TemporaryDirectory(dir=pool.folder, ignore_cleanup_errors=True) as work:
        put_files(Path(work), files or {})
        seed = terms.seed(kit.chapter, "")
        with pool.kernel(work, terms.limits, seed, AUTOGRADE) as kernel:
            clock.lap("kernel")
            run = NotebookRun(kernel, notebook, kit, terms)
            run.run()
            clock.lap("run")
    clock.seconds |= {"cells": run.cell_seconds, "verdicts": run.verdict_seconds}
    scores = run.scores | written_scores(notebook, kit.graded)
    graded = Graded(
        StudentResult(
            "graded", repairs, missing_modules(notebook), results_of(notebook, kit.graded, scores, run, terms)
        ),
        scores,
        unanswered_cells(notebook, kit),
        finished(notebook, kit),
    )
    graded.result.status = overall_status(graded.result.exercises)
    clock.lap("finish")
    graded.seconds, graded.slow_cells = clock.seconds, run.slow_cells
    return graded


def work_key(data: bytes, files: Mapping[str, bytes]) -> str:
    """Return a key of what was handed in."""
    return grading_key(data, *(part for name in sorted(files) for part in (os.fsencode(name), files[name])))


class Clock:
    """Notes how long each part took."""

    def __init__(self) -> None:
        """Begin now."""
        self.last = time.monotonic()
        self.seconds: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Name the time since the last lap."""
        now = time.monotonic()
        self.seconds[name], self.last = round(now - self.last, 4), now


def put_files(work: Path, files: Mapping[str, bytes]) -> None:
    """Lay what was handed in beside the notebook into the working folder."""
    for name, content in files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def written_scores(notebook: NotebookNode, graded: list[GradedCell]) -> dict[str, float | None]:
    """Return 0 for an answer as it was handed out, and None for one that a person reads."""
    written = {mark.grade_id for mark in graded if mark.written}
    return {
        str(grade_id(cell)): 0.0 if is_unanswered(cell) else None
        for cell in notebook.cells
        if grade_id(cell) in written
    }


def is_unanswered(cell: NotebookNode) -> bool:
    """Return whether a cell reads as it was handed out, by nbgrader's checksum; a line end behind it is no answer."""
    bare = NotebookNode(cell | {"source": cell.source.rstrip()})
    return cell.metadata["nbgrader"].get("checksum") in (compute_checksum(cell), compute_checksum(bare))


def unanswered_cells(notebook: NotebookNode, kit: ChapterKit) -> list[str]:
    """Return the answer cells that are as they were handed out."""
    return [
        str(grade_id(cell))
        for cell in notebook.cells
        if grade_id(cell) in kit.marked and cell.metadata["nbgrader"].get("solution") and is_unanswered(cell)
    ]


def missing_modules(notebook: NotebookNode) -> list[str]:
    """Return a sentence for each module that a cell imports and that is not there."""
    errors = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error" and output.ename == "ModuleNotFoundError"
    ]
    return list(dict.fromkeys(f"A module is missing where this was graded: {quote(one.evalue)}." for one in errors))


def results_of(
    notebook: NotebookNode,
    graded: list[GradedCell],
    scores: Mapping[str, float | None],
    run: NotebookRun,
    terms: Terms,
) -> dict[str, ExerciseResult]:
    """Return the exercises' results with the seconds that were measured here."""
    rows = {name: Score(points or 0.0, points is None) for name, points in scores.items()}
    exercises = exercise_results(notebook, graded, rows, terms.cell_seconds)
    for name, result in exercises.items():
        own = [run.seconds[mark.grade_id] for mark in graded if mark.exercise == name and mark.grade_id in run.seconds]
        exercises[name] = replace(result, seconds=round(sum(own), MILLISECOND_DIGITS) if own else None)
    return exercises


def finished(notebook: NotebookNode, kit: ChapterKit) -> str:
    """Return the graded notebook's text, with no more output than nbgrader keeps."""
    limit = LimitOutput(max_lines=kit.max_lines, max_traceback=kit.max_traceback)
    notebook, _ = limit.preprocess(notebook, {})
    return nbformat.writes(notebook)


def failed(kit: ChapterKit, reason: str, repairs: list[str] | None = None) -> Graded:
    """Return the result of a submission of which nothing could be graded."""
    maxima: dict[str, float] = {}
    for mark in kit.graded:
        maxima[mark.exercise] = maxima.get(mark.exercise, 0.0) + mark.points
    exercises = {
        name: ExerciseResult(0.0, maximum, status="failed", message=reason) for name, maximum in maxima.items()
    }
    return Graded(StudentResult("failed", repairs or [], [reason], exercises))
