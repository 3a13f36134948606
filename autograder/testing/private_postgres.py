"""A PostgreSQL server for the tests alone: in a temporary folder, reached over a socket file, ended by its process."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

INSTALLED = Path("/usr/lib/postgresql")
ORDINARY_USERS = ("postgres", "nobody")  # the server refuses to run as root
USER = "grader"
SECONDS_TO_START = 60.0
SECONDS_BETWEEN_LOOKS = 0.05


def programs() -> Path | None:
    """Return the folder of the newest installed server's programs."""
    found = [path.parent for path in INSTALLED.glob("*/bin/initdb")]
    return max(found, key=lambda path: float(path.parent.name), default=None)


class PrivatePostgres:
    """One server."""

    def __init__(self, programs: Path):
        """Make its folder and its files; `start` starts it."""
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="course-", dir="/tmp"))  # a socket's path must be short
        self.as_user: dict[str, Any] = {"cwd": self.folder}
        if os.geteuid() == 0:
            user = next(entry for entry in pwd.getpwall() if entry.pw_name in ORDINARY_USERS)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.as_user |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.data = self.folder / "data"
        self.process: subprocess.Popen | None = None
        self.names = 0
        make = [
            programs / "initdb",
            "-D",
            self.data,
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, **self.as_user)

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [self.programs / "postgres", "-D", self.data, "-k", self.folder, "-h", "", "-F"]
        with (self.folder / "log").open("ab") as log:
            self.process = running = subprocess.Popen(command, stdout=log, stderr=log, **self.as_user)
        ready = [self.programs / "pg_isready", "-q", "-h", self.folder, "-U", USER]
        deadline = time.monotonic() + SECONDS_TO_START
        while subprocess.run(ready).returncode:
            if running.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it, at once and with its connections by default."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def url(self, name: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://{USER}@/{name}?host={self.folder}"

    def new_database(self, template: str = "template1") -> str:
        """Make a database like another one; return its name."""
        import psycopg

        self.names += 1
        name = f"book{self.names}"
        with psycopg.connect(host=str(self.folder), user=USER, dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return name

    def close(self) -> None:
        """End it and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
