"""Starts and ends a real JupyterLab on a course folder, apart from everything else of this machine's user."""

import json
import os
import secrets
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.commands.lab import THIS_MACHINE, config_path, lab_command

START_SECONDS = 180  # before a server counts as not starting at all
STOP_SECONDS = 60  # for its kernels to end
ASK_AGAIN_SECONDS = 0.2
LOG_TAIL = 2000  # characters of the server's log in an error
OWN_FOLDERS = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "MPLCONFIGDIR")
LEFT_OUT = ("JUPYTER_CONFIG_PATH", "MPLBACKEND")  # a learner's kernel chooses its own way to show plots


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab."""

    address: str
    token: str
    root: Path
    pid: int = 0

    def url(self, path: str) -> str:
        """Return the address of a page on this server, such as `lab/tree/a.ipynb` or `formgrader`."""
        return f"{self.address}/{path}?token={self.token}"


@contextmanager
def jupyter_lab(root: Path, home: Path, course: Path | None = None) -> Iterator[Lab]:
    """Serve a folder as `course lab` would, until the block ends.

    Args:
        root: The folder whose files the browser sees.
        home: Where settings, runtime files and the log go; made if it is not there.
        course: The server's working folder, where nbgrader reads its configuration; by default the root.

    Raises:
        RuntimeError: the server ended, or gave no answer; the message holds the end of its log.
    """
    port = free_port()
    lab = Lab(f"http://localhost:{port}", secrets.token_hex(), root)
    log = home / "server.log"
    own = environment(home, lab.token)
    with log.open("w") as stream:
        server = subprocess.Popen(
            lab_command(root, "", port, THIS_MACHINE, open_browser=False),
            cwd=course or root,
            env=own,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_until_ready(server, lab, log)
            yield replace(lab, pid=server.pid)
        finally:
            stop(server)


def end_kernels(lab: Lab) -> None:
    """End what runs on a server, so that no two notebooks take memory at once."""
    with urllib.request.urlopen(lab.url("api/sessions")) as answer:
        sessions = json.load(answer)
    for session in sessions:
        with urllib.request.urlopen(urllib.request.Request(lab.url(f"api/sessions/{session['id']}"), method="DELETE")):
            pass


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((THIS_MACHINE, 0))
        return probe.getsockname()[1]


def environment(home: Path, token: str) -> dict[str, str]:
    """Make a home for everything that Jupyter keeps; return this process's environment with that home in it."""
    own = {name: home / name.lower() for name in OWN_FOLDERS}
    inherited = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    return {
        **inherited,
        **{name: str(folder) for name, folder in own.items()},
        "HOME": str(home),
        "JUPYTER_TOKEN": token,
        "JUPYTER_CONFIG_PATH": config_path({}),
    }


def wait_until_ready(server: subprocess.Popen, lab: Lab, log: Path) -> None:
    """Return as soon as the server answers."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"JupyterLab ended while it started; its log says: {log.read_text()[-LOG_TAIL:]}")
        try:
            with urllib.request.urlopen(lab.url("api/status")):
                return
        except OSError:
            time.sleep(ASK_AGAIN_SECONDS)
    raise RuntimeError(f"JupyterLab gave no answer in {START_SECONDS} s; its log says: {log.read_text()[-LOG_TAIL:]}")


def stop(server: subprocess.Popen) -> None:
    """End the server as Ctrl-C does, which ends its kernels too; by force if it does not follow."""
    if server.poll() is None:
        server.send_signal(signal.SIGINT)
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
