"""`course lab`: JupyterLab, opened on a chapter."""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.common import console, course_root, error_console, resolve_chapter
from autograder.errors import CourseError

NAME = "lab"
EXAMPLES = "Examples: `course lab`; `course lab 02`; `course lab 01_attention --port 9000 --no-browser`."

FIRST_PORT = 8888  # where Jupyter usually listens
PORTS_TRIED = 50
LAST_PORT = 65535
TOKEN_BYTES = 24  # as long as the token that Jupyter itself would draw
THIS_MACHINE = "127.0.0.1"
JUPYTER_CONFIG = Path(__file__).parent / "jupyter"  # no question about news, and no panel for authors


def run(
    chapter: Annotated[
        str | None, typer.Argument(help="A chapter, as 01_attention or 1.", show_default="the first")
    ] = None,
    port: Annotated[int | None, typer.Option(min=1, max=LAST_PORT, help="The port to listen on.")] = None,
    address: Annotated[str, typer.Option("--ip", help="Where to listen; 0.0.0.0 in a container.")] = THIS_MACHINE,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser if there is one.")] = True,
) -> None:
    """Open a chapter in JupyterLab; Ctrl-C ends it. The address is printed where no browser can open."""
    folder = course_root() / "chapters"
    notebook = chapter_notebook(folder, chapter)
    listening = choose_port(port, address)
    token = os.environ.get("JUPYTER_TOKEN") or secrets.token_hex(TOKEN_BYTES)
    open_browser = browser and has_browser(os.environ, sys.platform)
    url = f"http://{local_name(address)}:{listening}/lab/tree/{notebook}?token={token}"
    out = console()
    out.print(
        "JupyterLab is starting. " + ("A browser opens" if open_browser else "Open this address") + " (Ctrl-C ends it):"
    )
    out.print(url, soft_wrap=True, markup=False)
    if in_container() and address == THIS_MACHINE:
        out.print("If the browser is outside this container, publish the port and add --ip 0.0.0.0.", soft_wrap=True)
    sys.stdout.flush()
    start(
        lab_command(folder, notebook, listening, address, open_browser),
        {**os.environ, "JUPYTER_TOKEN": token, "JUPYTER_CONFIG_PATH": config_path(os.environ)},
    )


def chapter_notebook(folder: Path, chapter: str | None) -> str:
    """Return the notebook to open, relative to chapters/."""
    if not any(folder.glob("*/*.ipynb")):
        raise CourseError(f"There is no notebook in {folder}; run `course build` to make the chapters.")
    chapters = sorted({path.parent.name for path in folder.glob("*/*.ipynb")})
    name = chapters[0] if chapter is None else resolve_chapter(chapter, chapters)
    notebook = folder / name / f"{name}.ipynb"
    if not notebook.is_file():
        raise CourseError(f"Chapter {name} has no notebook {name}.ipynb; run `course build {name}`.")
    return f"{name}/{name}.ipynb"


def choose_port(port: int | None, address: str) -> int:
    """Return the port asked for, or else the first free one from 8888 on, saying so when it is another."""
    if port is not None:
        if not is_free(port, address):
            raise CourseError(f"Port {port} is taken or not allowed; name another, or leave --port out for a free one.")
        return port
    for candidate in range(FIRST_PORT, FIRST_PORT + PORTS_TRIED):
        if is_free(candidate, address):
            if candidate != FIRST_PORT:
                error_console().print(f"Port {FIRST_PORT} is taken, perhaps by another notebook; using {candidate}.")
            return candidate
    raise CourseError(f"Ports {FIRST_PORT} to {candidate} are all taken; name a free one with --port.")


def is_free(port: int, address: str) -> bool:
    """Return whether a server may listen on the port."""
    with socket.socket() as probe:
        if sys.platform != "win32":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except socket.gaierror as error:
            raise CourseError(
                f"--ip: {address!r} is no address of this machine; leave it out or use 0.0.0.0."
            ) from error
        except OSError:
            return False
    return True


def has_browser(environment: Mapping[str, str], platform: str) -> bool:
    """Return whether opening a browser can work: on Linux that takes a display or a named browser."""
    if not platform.startswith(("linux", "freebsd")):
        return True
    return any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def in_container() -> bool:
    """Return whether this process runs in Docker or Podman."""
    return Path("/.dockerenv").exists() or Path("/run/.containerenv").exists()


def is_root() -> bool:
    """Return whether this is the superuser, as in most containers."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def local_name(address: str) -> str:
    """Return the name under which this machine reaches the server."""
    return "localhost" if address in (THIS_MACHINE, "0.0.0.0") else address


def lab_command(folder: Path, notebook: str, port: int, address: str, open_browser: bool) -> list[str]:
    """Return the command line that starts JupyterLab quietly and without asking the network for news."""
    options = {
        "ServerApp.root_dir": folder,
        "ServerApp.ip": address,
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.open_browser": open_browser,
        "ServerApp.answer_yes": True,  # Ctrl-C ends the server without a question
        "ServerApp.log_level": "WARN",
        "LabApp.log_level": "WARN",
        "LabApp.default_url": f"/lab/tree/{notebook}",
        "LabApp.news_url": None,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.extension_manager": "readonly",
    }
    command = [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())]
    return [*command, "--allow-root"] if is_root() else command


def config_path(environment: Mapping[str, str]) -> str:
    """Return where Jupyter looks for configuration: in the course's folder, and wherever it did before."""
    return os.pathsep.join(filter(None, [str(JUPYTER_CONFIG), environment.get("JUPYTER_CONFIG_PATH")]))


def start(command: list[str], environment: dict[str, str]) -> None:
    """Become JupyterLab, so that signals reach it and not a parent; Windows has no such step and waits."""
    if sys.platform == "win32":
        raise typer.Exit(subprocess.call(command, env=environment))
    os.execve(command[0], command, environment)
