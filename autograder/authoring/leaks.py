"""Finds what no student's file may hold: solutions, hidden tests, model answers, words of misconceptions."""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator

from nbformat import NotebookNode

from autograder.authoring.chapter_source import ChapterSource, SourceCell
from autograder.authoring.instructor import visible_line
from autograder.authoring.roles import MARKS, SOLUTION_MARKS, STARTER_MARKS, grade_id

# In characters (of code, without its spaces): what is shorter may stand in a student's notebook by chance.
TELLING_CODE = 32
TELLING_SOLUTION = 16
TELLING_PROSE = 24
SHOWN = 60  # characters of a leaked text that a message repeats
HARMLESS_IN_TESTS = re.compile(r"from autograder import check|import \w+|check\(\w+(, hidden=True)?\)")


def leaks(where: str, student: NotebookNode, source: ChapterSource, secrets: Iterable[str] = ()) -> list[str]:
    """Name each secret of the source, and each text in `secrets`, that reached a student's notebook."""
    problems = text_leaks(where, notebook_text(student), source, secrets)
    cells = {cell.metadata.nbgrader.grade_id: cell for cell in student.cells if "nbgrader" in cell.metadata}
    for exercise, roles in source.exercises().items():
        for number in range(1, len(roles.get("hidden test", [])) + 1):
            released = cells.get(grade_id(exercise, "hidden test", number))
            if released is not None and released.source.strip() != visible_line(exercise):
                problems.append(f"{where}: the hidden test cell of {exercise} shows more than its one visible line.")
    return problems


def text_leaks(where: str, text: str, source: ChapterSource, secrets: Iterable[str] = ()) -> list[str]:
    """Name each secret of the source, and each text in `secrets`, that stands in a student's file."""
    problems = [f"{where}: the words {mark} reached a student's file." for mark in MARKS if mark in text]
    problems += secret_leaks(where, text, secrets)
    starters = _dense("\n".join(_starter(cell.text) for cell in source.cells if cell.role == "answer"))
    for cell in source.cells:
        if cell.role == "answer":
            problems += _solution_leaks(where, text, cell, starters)
        elif cell.role == "written":
            problems += _prose_leaks(where, text, cell)
        elif cell.role == "hidden test":
            problems += _hidden_test_leaks(where, text, cell)
    return problems


def secret_leaks(where: str, text: str, secrets: Iterable[str]) -> list[str]:
    """Name each text in `secrets` that stands in `text`, whatever its line breaks and capitals."""
    flat = _flat(text)
    return [
        f"{where}: the words of a misconception reached a student's file: {_start(secret)!r}."
        for secret in secrets
        if _flat(secret) and _flat(secret) in flat
    ]


def notebook_text(notebook: NotebookNode) -> str:
    """Join everything a notebook shows or carries: sources, outputs, attachments, metadata."""
    parts = [json.dumps(notebook.metadata, ensure_ascii=False)]
    for cell in notebook.cells:
        parts.append(cell.source)
        carried = {key: value for key, value in cell.items() if key not in ("source", "id", "cell_type")}
        parts += _strings(carried)
    return "\n".join(parts)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inside in value.items():
            yield str(key)
            yield from _strings(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from _strings(inside)


def _solution_leaks(where: str, text: str, cell: SourceCell, starters: str) -> Iterator[str]:
    """Look for the whole solution, line for line, and for each of its telling lines that no starter shows."""
    solution = [line.strip() for line in _between(cell.text, SOLUTION_MARKS).split("\n") if line.strip()]
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    telling = len(_dense("".join(solution))) >= TELLING_SOLUTION
    if telling and any(lines[start : start + len(solution)] == solution for start in range(len(lines))):
        yield f"{where}: the solution of {cell.exercise} reached a student's file."
        return
    flat = _dense(text)
    for line in solution:
        dense = _dense(line)
        if len(dense) >= TELLING_CODE and dense in flat and dense not in starters:
            yield f"{where}: a line of the solution of {cell.exercise} reached a student's file: {line!r}."


def _between(text: str, marks: tuple[str, str]) -> str:
    begin, end = marks
    if begin not in text:
        return ""
    return text.split(begin, 1)[1].rsplit(end, 1)[0].rsplit("\n", 1)[0]


def _starter(text: str) -> str:
    return re.sub(r"(?m)^\s*# ?", "", _between(text, STARTER_MARKS))


def _hidden_test_leaks(where: str, text: str, cell: SourceCell) -> Iterator[str]:
    dense = _dense(text)
    for line in cell.text.split("\n"):
        if HARMLESS_IN_TESTS.fullmatch(line.strip()) or not line.strip():
            continue
        if len(_dense(line)) >= TELLING_CODE and _dense(line) in dense:
            shown = line.strip()
            yield f"{where}: a hidden test line of {cell.exercise} reached a student's file: {shown!r}."


def _prose_leaks(where: str, text: str, cell: SourceCell) -> Iterator[str]:
    flat = _flat(text)
    for part in re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*[-*|]\s*", cell.text):
        sentence = part.strip(" \n-*|#>")
        if len(_flat(sentence)) >= TELLING_PROSE and _flat(sentence) in flat:
            shown = _start(sentence)
            yield f"{where}: the model answer of {cell.exercise} reached a student's file: {shown!r}."


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()


def _dense(text: str) -> str:
    return "".join(text.split())


def _start(text: str) -> str:
    return textwrap.shorten(text, SHOWN, placeholder=" …")
