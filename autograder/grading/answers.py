"""Registered functions, wrong beliefs and unusual forms, as the source text of an answer cell."""

import ast
import builtins
import inspect
import symtable
import textwrap
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

OUR_LIBRARY = "course_lib"
OUR_CHECKS = "autograder"
PLAIN = (int, float, str)  # constants whose printed form is Python


@dataclass
class AnswerSource:
    """A self-contained answer in the making.

    Args:
        imports: Lines by the name that they bring.
        helpers: Definitions by name, each after those that it uses.
        answer: The definition under the exercise's name.
        borrows: Whether it calls the course's own library.
    """

    imports: dict[str, str] = field(default_factory=dict)
    helpers: dict[str, str] = field(default_factory=dict)
    answer: str = ""
    borrows: bool = False

    @property
    def text(self) -> str:
        """Return what stands in the answer cell."""
        imports = "\n".join(sorted(self.imports.values()))
        return "\n\n\n".join(part for part in (imports, *self.helpers.values(), self.answer) if part)


def answer_from(function: Callable[..., Any], name: str, defined: Collection[str] = ()) -> AnswerSource:
    """Return a registered function as the answer to the exercise `name`.

    Args:
        function: A misconception or alternative, from an exercise's module.
        name: The exercise, which the function is renamed to.
        defined: Names that the notebook defines before, so that they need not be brought along.
    """
    source = AnswerSource(answer=definition(function, name))
    collect(function, {*defined} - {name}, source)
    return source


def collect(thing: Any, known: Collection[str], source: AnswerSource) -> None:
    """Add the imports and helpers that a function or class uses."""
    module = inspect.getmodule(thing)
    space = {} if module is None else vars(module)
    for used in outer_names(definition(thing)):
        if used in known or used in source.imports or used in source.helpers or used not in space:
            continue
        value = space[used]
        origin = value.__name__ if inspect.ismodule(value) else str(getattr(value, "__module__", ""))
        source.borrows |= origin.startswith(OUR_LIBRARY)
        if inspect.ismodule(value):
            source.imports[used] = f"import {origin}" + ("" if origin == used else f" as {used}")
        elif origin.startswith(OUR_CHECKS) and callable(value):
            collect(value, {*known, used}, source)
            source.helpers[used] = definition(value)
        elif callable(value):
            alias = "" if value.__name__ == used else f" as {used}"
            source.imports[used] = f"from {origin} import {value.__name__}{alias}"
        elif isinstance(value, PLAIN):
            source.imports[used] = f"{used} = {value!r}"
        elif module is not None:
            source.imports[used], source.borrows = f"from {module.__name__} import {used}", True


def definition(thing: Any, name: str | None = None) -> str:
    """Return the source of a function or class without decorators and annotations, under another name if given."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    outermost = tree.body[0]
    if isinstance(outermost, ast.FunctionDef | ast.ClassDef):
        outermost.decorator_list = []
        outermost.name = name or outermost.name
    return ast.unparse(tree)


def outer_names(source: str) -> list[str]:
    """Return the names that a definition takes from around it, in alphabetical order and without Python's own."""
    top = symtable.symtable(source, "<answer>", "exec")
    found = {symbol.get_name() for symbol in top.get_symbols() if not symbol.is_assigned()}  # bases and defaults
    waiting = top.get_children()
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        found |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return sorted(name for name in found if not hasattr(builtins, name))
