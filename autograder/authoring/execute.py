"""Run a chapter from top to bottom as a learner's JupyterLab would, and say what it cost."""

from __future__ import annotations

import copy
import json
import os
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

CELL_SECONDS = 300

# A chapter must not ask the network for anything, so each connection that leaves the machine is an error.
OFFLINE = """
import socket as _socket
_connect = _socket.socket.connect
def _connect_locally(self, address):
    if isinstance(address, tuple) and not str(address[0]).startswith(("127.", "::1", "localhost")):
        raise OSError(f"a chapter runs offline, and this one asked for {address}")
    return _connect(self, address)
_socket.socket.connect = _connect_locally
"""

COST = """
import json as _json, resource as _resource
_own, _children = _resource.getrusage(_resource.RUSAGE_SELF), _resource.getrusage(_resource.RUSAGE_CHILDREN)
print(_json.dumps({
    "cpu_seconds": _own.ru_utime + _own.ru_stime + _children.ru_utime + _children.ru_stime,
    "peak_bytes": 1024 * (_own.ru_maxrss + _children.ru_maxrss),
}))
"""


@dataclass(frozen=True)
class Execution:
    """An executed notebook and its cost, the kernel's start and its imports included."""

    notebook: NotebookNode
    cpu_seconds: float
    peak_bytes: int

    def errors(self) -> dict[str, str]:
        """Give the exceptions that cells ended in, by cell id."""
        return {
            cell.id: f"{output.ename}: {output.evalue}"
            for cell in self.notebook.cells
            for output in cell.get("outputs", [])
            if output.output_type == "error"
        }

    def noise(self) -> dict[str, str]:
        """Give what cells wrote to stderr, warnings included, by cell id."""
        return {
            cell.id: output.text
            for cell in self.notebook.cells
            for output in cell.get("outputs", [])
            if output.output_type == "stream" and output.name == "stderr"
        }


def execute(notebook: NotebookNode, folder: Path, quick: bool) -> Execution:
    """Execute every cell offline, going on after errors.

    Args:
        notebook: The notebook; it is left as it is.
        folder: The working folder.
        quick: Whether long cells shorten.
    """
    ran = copy.deepcopy(notebook)
    ran.cells = [new_code_cell(OFFLINE, id="offline"), *ran.cells, new_code_cell(COST, id="cost")]
    client = NotebookClient(
        ran,
        timeout=CELL_SECONDS,
        allow_errors=True,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    changed = {"COURSE_QUICK": "1" if quick else "0", "MPLBACKEND": ""}
    with mock.patch.dict(os.environ, changed):
        os.environ.pop("MPLBACKEND")
        client.execute(cwd=str(folder))
    cost = json.loads(ran.cells[-1].outputs[0].text)
    ran.cells = ran.cells[1:-1]
    return Execution(ran, cost["cpu_seconds"], cost["peak_bytes"])
