"""Give plain Jupyter clients, `nbgrader autograde` among them, the sandboxed warm kernels.

`JUPYTER_DEFAULT_PROVISIONER_NAME=course-sandbox` in a grader's environment selects it for every Python notebook;
`COURSE_SANDBOX` chooses the walls, as `--sandbox` does. The warm process starts with the first kernel.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import signal
import threading
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner

from autograder.grading.forked import SECONDS_TO_END, ForkedProcess
from autograder.grading.limits import Limits
from autograder.grading.pool import SANDBOX_VARIABLE, KernelPool
from autograder.grading.sandbox import AUTO, Room, SandboxError

NAME = "course-sandbox"
PASSED_ON = ("NBGRADER_", "COURSE_QUICK")
POLL_SECONDS = 0.002

_lock = threading.Lock()
_pools: list[KernelPool] = []


def shared_pool() -> KernelPool:
    """Give this process's one pool, started on first use and ended with the process.

    Raises:
        SandboxError: No sandbox works here, and none was not asked for.
    """
    with _lock:
        if not _pools:
            pool = KernelPool(os.environ.get(SANDBOX_VARIABLE, AUTO))
            pool.start()
            _pools.append(pool)
            atexit.register(close_shared_pool)
        return _pools[0]


def close_shared_pool() -> None:
    """End the shared pool; the next kernel starts a new one."""
    with _lock:
        while _pools:
            _pools.pop().close()


class Popenlike:
    """A confined process with the methods of `subprocess.Popen` that jupyter_client calls."""

    stdin = stdout = stderr = None

    def __init__(self, process: ForkedProcess):
        """Wrap a process."""
        self.process, self.pid = process, process.pid

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        end = self.process.poll()
        return None if end is None else end.code

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end and let its keeper go."""
        end = self.process.wait(SECONDS_TO_END if timeout is None else timeout)
        if end is not None:
            self.process.close()
        return None if end is None else end.code

    def send_signal(self, number: int) -> None:
        """Send a signal; what only asks for an end is made to mean it, for the notebook may not listen."""
        self.process.send_signal(signal.SIGKILL if number == signal.SIGTERM else number)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    terminate = kill


class ZygoteProvisioner(LocalProvisioner):
    """Fork the kernel from the warm process, confined, instead of starting a Python."""

    folder = ""

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Choose private sockets: a relative path would put them into the student's folder."""
        if self.kernel_spec.language.lower() != "python":
            raise SandboxError(f"Only Python notebooks can be run in the sandbox, not {self.kernel_spec.language}.")
        self.folder = shared_pool().new_folder()
        manager: Any = self.parent
        manager.cache_ports = False
        manager.transport = "ipc"
        manager.ip = os.path.join(self.folder, "k")
        manager.connection_file = os.path.join(self.folder, "kernel.json")
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork a kernel; it is ready to be spoken to when this returns.

        Raises:
            SandboxError: It could not be confined.
        """
        pool = shared_pool()
        work = os.path.realpath(kwargs.get("cwd") or os.getcwd())
        given = kwargs.get("env") or {}
        env = {name: value for name, value in given.items() if name.startswith(PASSED_ON)}
        file = os.path.join(self.folder, "kernel.json")
        room = Room(pool.kind, self.folder, work)
        process = pool.fork("kernel", room, Limits(), env=env, connection_file=file)
        process.wait_ready()
        self.process = Popenlike(process)  # type: ignore[assignment]
        self.pid, self.pgid, self.cwd = process.pid, None, work  # type: ignore[assignment]
        return self.connection_info

    async def wait(self) -> int | None:
        """Wait for the end of the kernel, looking more often than the stock provisioner."""
        while await self.poll() is None:
            await asyncio.sleep(POLL_SECONDS)
        code = self.process.wait() if self.process else 0
        self.process = None
        return code

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the private sockets."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = ""
        await super().cleanup(restart)
