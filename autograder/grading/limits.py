"""How much one submission may use, and the limits that the kernel of the operating system keeps by itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MEGABYTE = 2**20
MANY_FILES = 65_536  # for more workers than any machine has cores
NAMESPACED_PROCESS_COUNT = (5, 14)  # from this Linux on, a user namespace counts its own processes


@dataclass(frozen=True)
class Limits:
    """What one submission's process may use.

    Args:
        memory_mb: Memory beyond what a fresh kernel has; each process alone, and all of them together.
        processes: Processes and threads at a time; a fresh kernel has about a dozen threads.
        file_mb: The largest file that may be written.
        disk_mb: All files together, in the working folder and in each private folder; what is deleted but still
            open counts too.
        files: How many files and folders may be made.
        open_files: File descriptors of one process.
        cpu_seconds: Processor time of one process.
        seconds: Time from start to end.
        output_bytes: Output of one cell that is kept.
        threads: Threads of NumPy and PyTorch.
    """

    memory_mb: int = 2048
    processes: int = 128
    file_mb: int = 64
    disk_mb: int = 256
    files: int = 5_000
    open_files: int = 512
    cpu_seconds: int = 1_200
    seconds: float = 1_200.0
    output_bytes: int = 1_000_000
    threads: int = 1


def data_size() -> int:
    """Return the private memory that this process has reserved, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def kernel_version() -> tuple[int, int]:
    """Return the version of Linux that runs."""
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(filter(str.isdigit, minor.split("-")[0])))


def open_many_files() -> None:
    """Let this process open as many files as it may: each notebook under way takes about a dozen."""
    try:
        import resource
    except ImportError:  # on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, MANY_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def apply_limits(limits: Limits, own_user_namespace: bool) -> None:
    """Set the limits that hold for this process and its children, for good.

    Memory is limited by RLIMIT_DATA: PyTorch reserves too much address space for RLIMIT_AS. Where the user's
    processes outside would be counted too, the keeper alone counts processes.
    """
    import resource  # not on Windows, where nothing calls this

    wanted = {
        resource.RLIMIT_DATA: data_size() + limits.memory_mb * MEGABYTE,
        resource.RLIMIT_FSIZE: limits.file_mb * MEGABYTE,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if own_user_namespace and kernel_version() >= NAMESPACED_PROCESS_COUNT:
        wanted[resource.RLIMIT_NPROC] = limits.processes
    for kind, value in wanted.items():
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
