"""What grading one chapter needs beside a submission: its cells as handed out, hidden tests in, and its checks."""

from __future__ import annotations

import ast
import copy
import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.errors import CourseError
from autograder.grading.cells import GradedCell, gives_points, grade_id, graded_cells

CHECK, CHECKS_HOME = "check", "autograder"
MOST_LINES, LONGEST_TRACEBACK = 1000, 100  # nbgrader's own defaults


@dataclass(frozen=True)
class CheckCall:
    """A test cell that is a call of `check`.

    Args:
        exercise: The exercise's name.
        solution: The name of the function in the notebook.
        hidden: Whether the hidden cases count.
    """

    exercise: str
    solution: str
    hidden: bool


@dataclass(frozen=True)
class ChapterKit:
    """One chapter, ready to grade submissions; made of text alone, so that it can be sent to another machine.

    Args:
        chapter: The chapter's folder name.
        prepared: The source notebook's text with stubs for answers and with hidden tests.
        released: The texts of the marked cells as students got them, by grade_id.
        calls: The test cells whose verdict comes from outside the student's process.
        max_lines: Lines of output of a cell that are kept.
        max_traceback: Lines of a traceback that are kept.
    """

    chapter: str
    prepared: str
    released: dict[str, str] = field(default_factory=dict)
    calls: dict[str, CheckCall] = field(default_factory=dict)
    max_lines: int = MOST_LINES
    max_traceback: int = LONGEST_TRACEBACK

    @cached_property
    def source(self) -> NotebookNode:
        """Return the prepared notebook, which nobody changes."""
        return nbformat.reads(self.prepared, as_version=nbformat.NO_CONVERT)

    @cached_property
    def marked(self) -> dict[str, NotebookNode]:
        """Return the cells that nbgrader names."""
        return {str(grade_id(cell)): cell for cell in self.source.cells if grade_id(cell) is not None}

    @cached_property
    def graded(self) -> list[GradedCell]:
        """Return what gives points."""
        return graded_cells(self.source)


def chapter_kit(chapter: str, source: NotebookNode, config: Any) -> ChapterKit:
    """Make the kit from the instructor's notebook, by the release steps that the course configures.

    Raises:
        CourseError: nbgrader refuses the notebook.
    """
    from nbgrader.converters import GenerateAssignment
    from nbgrader.preprocessors import LimitOutput

    steps = [_loaded(step) for step in GenerateAssignment(config=config).preprocessors]
    cut = next((place for place, step in enumerate(steps) if step.__name__ == "SaveCells"), len(steps))
    try:
        prepared = _through(steps[:cut], copy.deepcopy(source), config)
        released = _through(steps[cut + 1 :], copy.deepcopy(prepared), config)
    except Exception as error:
        raise CourseError(f"nbgrader cannot release {chapter}: {error}") from error
    texts = {str(grade_id(cell)): cell.source for cell in released.cells if grade_id(cell) is not None}
    limit = LimitOutput(config=config)
    return ChapterKit(
        chapter, nbformat.writes(prepared), texts, check_calls(prepared), limit.max_lines, limit.max_traceback
    )


def _loaded(step: Any) -> Any:
    """Return a step's class, from itself or from its name."""
    if not isinstance(step, str):
        return step
    module, _, name = step.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _through(steps: Iterable[Any], notebook: NotebookNode, config: Any) -> NotebookNode:
    """Run a notebook through nbgrader's steps."""
    resources: dict[str, Any] = {"nbgrader": {}}
    for step in steps:
        notebook, resources = step(config=config).preprocess(notebook, resources)
    return notebook


def check_calls(prepared: NotebookNode) -> dict[str, CheckCall]:
    """Return the locked test cells that call the course's own `check`, by grade_id."""
    code = [cell for cell in prepared.cells if cell.cell_type == "code"]
    if not any(_imports_check(statement) for cell in code for statement in _statements(cell.source)):
        return {}
    tests = [cell for cell in code if gives_points(cell) and not cell.metadata["nbgrader"].get("solution")]
    calls = {str(grade_id(cell)): read_call(cell.source) for cell in tests}
    return {name: call for name, call in calls.items() if call is not None}


def read_call(source: str) -> CheckCall | None:
    """Return a test cell's one call of `check`; a cell that does anything else runs in the student's process."""
    rest = [statement for statement in _statements(source) if not _imports_check(statement)]
    if len(rest) != 1 or not isinstance(rest[0], ast.Expr) or not isinstance(rest[0].value, ast.Call):
        return None
    return _call(rest[0].value)


def _statements(source: str) -> list[ast.stmt]:
    """Return a cell's statements; none where Python cannot read them."""
    try:
        return ast.parse(source).body
    except SyntaxError:
        return []


def _imports_check(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.ImportFrom)
        and statement.module == CHECKS_HOME
        and [(name.name, name.asname) for name in statement.names] == [(CHECK, None)]
    )


def _call(node: ast.Call) -> CheckCall | None:
    if not isinstance(node.func, ast.Name) or node.func.id != CHECK or not node.args:
        return None
    solution, *more = node.args
    given: dict[str | None, ast.expr] = dict(zip(("exercise", "hidden"), more, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords}
    values = {name: value.value for name, value in given.items() if isinstance(value, ast.Constant)}
    plain = len(values) == len(given) and given.keys() <= {"exercise", "hidden"}
    if not isinstance(solution, ast.Name) or not plain:
        return None
    return CheckCall(str(values.get("exercise") or solution.id), solution.id, values.get("hidden") is True)
