"""Plain Jupyter clients get the sandboxed kernel through the official extension point."""

from importlib.metadata import EntryPoint
from pathlib import Path

import nbformat
import pytest
from jupyter_client.provisioning import KernelProvisionerFactory
from nbclient import NotebookClient

from autograder.grading import provisioner
from autograder.grading.pool import KernelPool
from autograder.grading.provisioner import NAME

CELLS = [
    "import os; print(os.getcwd(), os.getuid(), os.environ.get('NBGRADER_EXECUTION'))",
    "import torch; open('made', 'w').close(); torch.ones(2).sum()",
    "import socket; socket.socket()",
]


@pytest.fixture
def selected(warm_pool: KernelPool, monkeypatch: pytest.MonkeyPatch) -> KernelPool:
    """Select the provisioner as its environment variable does, with the tests' own pool."""
    factory = KernelProvisionerFactory.instance()
    entry = EntryPoint(NAME, "autograder.grading.provisioner:ZygoteProvisioner", factory.GROUP_NAME)
    monkeypatch.setitem(factory.provisioners, NAME, entry)
    monkeypatch.setattr(factory, "default_provisioner_name", NAME)
    monkeypatch.setattr(provisioner, "_pools", [warm_pool])
    return warm_pool


def run(tmp_path: Path, cells: list[str], **options) -> nbformat.NotebookNode:
    """Run a notebook as nbgrader does."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}, allow_errors=True, **options)
    return client.execute()


def test_a_notebook_runs_confined_in_its_own_folder(selected: KernelPool, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    cells = run(tmp_path, CELLS).cells
    if selected.kind == "namespaces":
        assert cells[0].outputs[0]["text"] == "/home/student/work 1000 autograde\n"
    assert cells[1].outputs[0].data["text/plain"] == "tensor(2.)"
    assert cells[2].outputs[0].ename == "PermissionError"
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_its_kernels_leave_no_folder(selected: KernelPool, tmp_path: Path) -> None:
    before = sorted(Path(selected.folder).iterdir())
    run(tmp_path, ["1"])
    assert sorted(Path(selected.folder).iterdir()) == before


def test_a_cell_that_takes_too_long_is_interrupted(selected: KernelPool, tmp_path: Path) -> None:
    cells = run(tmp_path, ["while True: pass", "print(1)"], timeout=1, interrupt_on_timeout=True).cells
    assert cells[0].outputs[-1].ename == "KeyboardInterrupt"
    assert cells[1].outputs[0]["text"] == "1\n"


def test_a_pool_is_started_once_and_ended_with_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Fake:
        def __init__(self, choice: str):
            started.append(choice)

        def start(self) -> None: ...

        def close(self) -> None:
            started.append("closed")

    monkeypatch.setattr(provisioner, "_pools", [])
    monkeypatch.setattr(provisioner, "KernelPool", Fake)
    monkeypatch.setattr(provisioner.atexit, "register", lambda function: None)
    monkeypatch.setenv("COURSE_SANDBOX", "landlock")
    assert provisioner.shared_pool() is provisioner.shared_pool()
    provisioner.close_shared_pool()
    assert started == ["landlock", "closed"]
