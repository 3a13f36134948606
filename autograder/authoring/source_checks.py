"""Finds what is wrong with a chapter source before a student or stock nbgrader does."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from nbformat import NotebookNode

from autograder.authoring.chapter_source import ChapterSource, SourceCell
from autograder.authoring.roles import SOLUTION_MARKS, STARTER_MARKS

OUR_ANSWERS = ("course_lib", "autograder")  # packages whose functions are the answers, or hold them
NOISY_MODULES = ("logging", "subprocess", "tqdm", "warnings")  # what writes to stderr, or makes others write

Roles = Mapping[str, list[SourceCell]]


class Registered(Protocol):
    """What is needed to know of a registered exercise."""

    name: str
    chapter: str
    forbids: tuple[str, ...]


def source_problems(source: ChapterSource) -> list[str]:
    """Name each fault that can be seen in the source alone."""
    problems: list[str] = []
    for exercise, roles in source.exercises().items():
        problems += _missing_parts(exercise, roles, source.path)
        for role, hidden in (("test", False), ("hidden test", True)):
            for cell in roles.get(role, []):
                problems += _test_problems(cell, hidden)
        for cell in roles.get("answer", []):
            problems += _answer_problems(cell)
    return problems


def registry_problems(sources: Iterable[ChapterSource], registered: Iterable[Registered]) -> list[str]:
    """Name where chapters and the registry differ, and each import that an exercise forbids."""
    by_name = {exercise.name: exercise for exercise in registered}
    problems: list[str] = []
    seen: dict[str, str] = {}
    for source in sources:
        for name, roles in source.exercises().items():
            if "answer" not in roles:
                continue
            cell, exercise = roles["answer"][0], by_name.get(name)
            if name in seen:
                problems.append(f"{cell.where}: the exercise {name} already stands in chapter {seen[name]}.")
            seen[name] = source.name
            if exercise is None:
                problems.append(f"{cell.where}: no exercise {name} is registered in autograder/exercises.")
            elif exercise.chapter != source.name:
                problems.append(f"{cell.where}: the exercise {name} is registered for chapter {exercise.chapter}.")
            else:
                problems += _forbidden_imports(cell, exercise.forbids)
    for exercise in by_name.values():
        if exercise.name not in seen:
            problems.append(f"solutions/{exercise.chapter}.py: the exercise {exercise.name} has no answer cell there.")
    return problems


def identity_problems(chapter: str, notebook: NotebookNode) -> list[str]:
    """Name each `grade_id` and cell id that two cells share."""
    problems: list[str] = []
    for kind, identities in (
        (
            "grade_id",
            [cell.metadata.nbgrader.grade_id for cell in notebook.cells if "nbgrader" in cell.metadata],
        ),
        ("cell id", [cell.id for cell in notebook.cells]),
    ):
        doubled = sorted({identity for identity in identities if identities.count(identity) > 1})
        problems += [f"{chapter}: the {kind} {identity!r} belongs to more than one cell." for identity in doubled]
    return problems


def _missing_parts(exercise: str, roles: Roles, path: str) -> Iterator[str]:
    graded = "written" if "written" in roles else "answer"
    needed = ("written",) if graded == "written" else ("header", "answer", "test", "hidden test")
    for role in needed:
        if role not in roles:
            yield f"{path}: the exercise {exercise} has no cell with role {role!r}."
    if graded == "written":
        for role in ("answer", "test", "hidden test"):
            if role in roles:
                yield f"{roles[role][0].where}: the written question {exercise} takes no {role!r} cell."


def _test_problems(cell: SourceCell, hidden: bool) -> Iterator[str]:
    tree = _parse(cell.text)
    if tree is None:
        yield f"{cell.where}: a test cell must be plain Python, without a magic or shell line."
        return
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and not _is_check(last.value):
        yield (
            f"{cell.where}: a test cell ends in the value of {ast.unparse(last)!r}, which nbgrader "
            "takes for points; end it in a call of check, an assert or an assignment."
        )
    if not any(_checks(node, str(cell.exercise), hidden) for node in ast.walk(tree)):
        wanted = f"check({cell.exercise}, hidden=True)" if hidden else f"check({cell.exercise})"
        yield f"{cell.where}: a cell with role {cell.role!r} must call {wanted}."
    for noise in sorted(set(_noise(tree))):
        yield f"{cell.where}: {noise} may write to stderr, for which nbgrader takes the cell's points."


def _is_check(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "check"


def _checks(node: ast.AST, exercise: str, hidden: bool) -> bool:
    """Say whether a node checks this exercise in this tier."""
    if not (isinstance(node, ast.Call) and _is_check(node)):
        return False
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    named = keywords.get("exercise", node.args[1] if len(node.args) > 1 else None)
    if named is not None:
        right = isinstance(named, ast.Constant) and named.value == exercise
    else:
        right = bool(node.args) and isinstance(node.args[0], ast.Name) and node.args[0].id == exercise
    tier = keywords.get("hidden")
    return right and (isinstance(tier, ast.Constant) and tier.value is True) == hidden


def _noise(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            imported = []
            if isinstance(node, ast.Attribute) and node.attr in ("stderr", "warn", "system"):
                yield f"{ast.unparse(node)!r}"
        yield from (f"the import of {name}" for name in imported if name.split(".")[0] in NOISY_MODULES)
        yield from (f"the import of {name}" for name in imported if name == "sys.stderr")


def _answer_problems(cell: SourceCell) -> Iterator[str]:
    tree = _parse(cell.text)
    if tree is None:
        yield f"{cell.where}: the answer is not valid Python."
        return
    for name in _imports(tree):
        if name.split(".")[0] in OUR_ANSWERS:
            yield f"{cell.where}: the answer imports {name}, which holds the answer already."
    if STARTER_MARKS[0] in cell.text and _parse(_with_starter(cell.text)) is None:
        yield f"{cell.where}: with its starter in place of the solution the cell is not valid Python."


def _forbidden_imports(cell: SourceCell, forbids: Iterable[str]) -> Iterator[str]:
    tree = _parse(cell.text)
    for name in _imports(tree) if tree else []:
        if name in forbids:
            yield f"{cell.where}: the answer imports {name}, which this exercise forbids."


def _imports(tree: ast.AST) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def _with_starter(text: str) -> str:
    from autograder.authoring.starter import insert_starter

    lines = text.split("\n")
    begin, end = (next(n for n, line in enumerate(lines) if mark in line) for mark in SOLUTION_MARKS)
    indent = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
    return insert_starter("\n".join([*lines[:begin], f"{indent}pass", *lines[end + 1 :]]), "pass")


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None
