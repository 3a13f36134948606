"""Start the zygote and talk to it; this module loads nothing heavy, so that a command can start it first of all."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from autograder.grading import linux
from autograder.grading.forked import MESSAGE_BYTES
from autograder.grading.sandbox import SandboxError

ZYGOTE = (
    "import sys; from autograder.grading.zygote import main; main(int(sys.argv[1]), sys.argv[2], bool(sys.argv[3]))"
)
LOADED = "with libraries"
ZYGOTE_LOG = "zygote.log"
THREADS_OFF = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "MPLCONFIGDIR", "XDG_CACHE_HOME", "VIRTUAL_ENV")
PATIENCE = 10  # seconds that the zygote has to end by itself


class WarmProcess:
    """The zygote, seen from the grader; it loads its libraries while the grader goes on."""

    def __init__(self, libraries: bool = True):
        """Start it.

        Args:
            libraries: Have it load what notebooks need; a pool that only probes does without.

        Raises:
            SandboxError: This system has not what it is built on.
        """
        try:
            linux.machine()
        except OSError as error:
            raise SandboxError(
                f"Neither the sandbox nor warm kernels can run here: {error.strerror}. "
                "`--sandbox none` grades with ordinary, unprotected kernels."
            ) from None
        self.folder = tempfile.mkdtemp(prefix="course-", dir="/tmp")
        self._lock = threading.Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, (Path(self.folder) / ZYGOTE_LOG).open("wb") as words:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", ZYGOTE, str(theirs.fileno()), self.folder, LOADED if libraries else ""],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=words,
                cwd=self.folder,
                env=_environment(),
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._loading = libraries

    def wait_ready(self) -> None:
        """Wait until the libraries are loaded.

        Raises:
            SandboxError: It ended instead, with its last words.
        """
        with self._lock:
            if self._loading:
                self._hear_loaded()
                self._loading = False

    def send(self, message: dict[str, Any], descriptors: list[int]) -> None:
        """Send a request with the ends of sockets.

        Raises:
            OSError: It has ended.
        """
        with self._lock:
            socket.send_fds(self._channel, [json.dumps(message).encode()], descriptors)

    def close(self) -> None:
        """End it, and with it every process that it forked; a second time does nothing."""
        self._channel.close()
        if self._loading:  # nothing is forked yet, and it would not listen before it has loaded all
            self._process.kill()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _hear_loaded(self) -> None:
        if not self._channel.recv(MESSAGE_BYTES):
            words = (Path(self.folder) / ZYGOTE_LOG).read_text(errors="replace").strip().splitlines()
            raise SandboxError(f"The warm process did not start: {words[-1] if words else 'it gave no reason'}")


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return kept | dict.fromkeys(THREADS_OFF, "1") | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
