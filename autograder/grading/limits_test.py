"""A notebook keeps to its limits of memory, processes, files and output, and the grader to its own memory."""

import os
from pathlib import Path

import pytest

from autograder.grading.limits import Limits
from autograder.grading.pool import KernelPool
from autograder.testing.watching import PATIENCE, text_of

SMALL = Limits(memory_mb=300, processes=60, file_mb=2, disk_mb=8, output_bytes=20_000)


def test_a_memory_bomb_is_an_error_in_its_cell_alone(walled_pool: KernelPool, tmp_path: Path) -> None:
    with walled_pool.kernel(tmp_path, SMALL) as kernel:
        found = kernel.execute("import numpy as np\nhoard = [np.ones(10**7) for _ in range(50)]")
        assert found.outputs[-1].ename == "MemoryError"
        assert kernel.execute("import torch; torch.ones(10**9)").outputs[-1].ename == "RuntimeError"
        assert text_of(kernel.execute("print(1)")) == "1\n"


def test_memory_of_all_processes_together_is_limited(walled_pool: KernelPool, tmp_path: Path) -> None:
    source = (
        "import os, time\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0:\n"
        "        hoard = b'x' * (200 * 2**20); time.sleep(600); os._exit(0)\n"
        "time.sleep(600)"
    )
    with walled_pool.kernel(tmp_path, SMALL) as kernel:
        assert kernel.execute(source, timeout=PATIENCE).status == "died"
        assert kernel.end is not None
        assert kernel.end.reason == "memory"


def test_a_fork_bomb_stays_small(walled_pool: KernelPool, tmp_path: Path) -> None:
    source = "import os, time\nfor _ in range(200):\n    if os.fork() == 0: time.sleep(600)\n"
    with walled_pool.kernel(tmp_path, SMALL) as kernel:
        found = kernel.execute(source, timeout=PATIENCE)
        assert found.status == "died" or found.outputs[-1].ename == "BlockingIOError"


def test_large_files_and_many_files_are_refused(walled_pool: KernelPool, tmp_path: Path) -> None:
    with walled_pool.kernel(tmp_path, SMALL) as kernel:
        assert kernel.execute("open('big', 'wb').write(b'x' * 3 * 2**20)").outputs[-1].ename == "OSError"
        source = "import time\nfor i in range(20): open(str(i), 'wb').write(b'x' * 2**20)\ntime.sleep(600)"
        assert kernel.execute(source, timeout=PATIENCE).status == "died"
        assert kernel.end is not None
        assert kernel.end.reason == "disk"


def test_files_that_are_deleted_but_open_count(walled_pool: KernelPool, tmp_path: Path) -> None:
    source = (
        "import os, time\nheld = []\nfor i in range(20):\n"
        "    held.append(open(str(i), 'wb', buffering=0)); os.unlink(str(i)); held[-1].write(b'x' * 2**20)\n"
        "time.sleep(600)"
    )
    with walled_pool.kernel(tmp_path, SMALL) as kernel:
        assert kernel.execute(source, timeout=PATIENCE).status == "died"
        assert kernel.end is not None
        assert kernel.end.reason == "disk"


def test_a_process_cannot_kill_its_keeper_with_its_group(walled_pool: KernelPool, tmp_path: Path) -> None:
    with walled_pool.kernel(tmp_path) as kernel:
        source = "import os, signal\nos.kill(0, signal.SIGKILL)\nos._exit(7)"
        found = kernel.execute(source, timeout=PATIENCE)
        assert found.status == "died"
        assert kernel.end is not None
        assert kernel.end.reason == ""


def test_long_output_is_cut_and_the_notebook_goes_on(walled_pool: KernelPool, tmp_path: Path) -> None:
    with walled_pool.kernel(tmp_path, SMALL) as kernel:
        found = kernel.execute("for i in range(200): print('x' * 1000, flush=True)")
        assert found.status == "ok"
        assert found.truncated > 0
        assert len(text_of(found)) < 2 * SMALL.output_bytes
        assert text_of(kernel.execute("print(1)")) == "1\n"


@pytest.mark.parametrize(
    "source",
    [
        "while True: print('x' * 10_000)",
        "print('x' * 10**8)",
        "raise ValueError('x' * 10**8)",
        "while True: display(1)",
    ],
)
def test_endless_output_is_stopped(source: str, walled_pool: KernelPool, tmp_path: Path) -> None:
    with walled_pool.kernel(tmp_path, Limits(output_bytes=SMALL.output_bytes)) as kernel:
        found = kernel.execute(source, timeout=PATIENCE)
        assert found.status == "output"
        assert len(text_of(found)) < 2 * SMALL.output_bytes


MANY_PARTS = """
import zmq
line, part = get_ipython().kernel.iopub_thread.socket, bytes(48 * 2**20)
for _ in range(20):
    line.send(zmq.Frame(part), zmq.SNDMORE, copy=False)
line.send(b"")
import time; time.sleep(600)
"""
MOST_GROWTH_MB = 300  # of the grader, while the kernel sends 960 MB


def resident_mb() -> float:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_a_message_of_many_parts_does_not_fill_the_memory_of_the_grader(
    walled_pool: KernelPool, tmp_path: Path
) -> None:
    most = before = resident_mb()
    with walled_pool.kernel(tmp_path) as kernel:
        wait = kernel.channels.wait

        def watch(seconds: float):
            nonlocal most
            most = max(most, resident_mb())
            return wait(seconds)

        kernel.channels.wait = watch  # type: ignore[method-assign]
        found = kernel.execute(MANY_PARTS, timeout=PATIENCE)
        assert found.status == "output"
        assert kernel.why_it_ended == "it sent a larger output than any that is taken"
    assert most - before < MOST_GROWTH_MB
