"""Watch what runs on this machine, for whoever tests that nothing is left behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

SECONDS_BETWEEN_LOOKS = 0.05


def processes_with(mark: str) -> list[int]:
    """List the processes of this machine whose command line holds a mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def soon(holds: Callable[[], bool], seconds: float) -> bool:
    """Wait until something holds, for so many seconds at most; tell whether it does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return holds()
