"""Puts a prepared starter where nbgrader would leave its stub: a bug hunt begins from code that runs."""

from typing import Any

from nbgrader.preprocessors import ClearSolutions, NbGraderPreprocessor

from autograder.authoring.roles import STARTER_MARKS

BEGIN, END = (f"# {mark}" for mark in STARTER_MARKS)


def insert_starter(text: str, stub: str) -> str:
    """Replace the stub and the commented starter behind it by the starter itself.

    Args:
        text: A cell whose solution region has already become the stub.
        stub: What nbgrader put there, unindented.

    Raises:
        RuntimeError: the starter does not stand directly behind the stub.
    """
    lines = text.split("\n")
    begin = next((number for number, line in enumerate(lines) if line.strip() == BEGIN), None)
    if begin is None:
        return text
    indent = lines[begin][: -len(BEGIN)]
    end = lines.index(indent + END, begin)
    stub_lines = [indent + line for line in stub.split("\n")]
    if lines[begin - len(stub_lines) : begin] != stub_lines:
        raise RuntimeError(f"{BEGIN} must stand on the line after # END SOLUTION.")
    starter = [_uncomment(line, indent) for line in lines[begin + 1 : end]]
    return "\n".join(lines[: begin - len(stub_lines)] + starter + lines[end + 1 :])


def _uncomment(line: str, indent: str) -> str:
    code = line[len(indent) :].removeprefix("#").removeprefix(" ")
    return indent + code if code else ""


class InsertStarter(NbGraderPreprocessor):
    """The step of nbgrader's release that follows `ClearSolutions`."""

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        """Insert the starter of one cell, if it has one."""
        if cell.cell_type == "code":
            stub = ClearSolutions(parent=self).code_stub[resources["language"]]
            cell.source = insert_starter(cell.source, stub)
        return cell, resources
