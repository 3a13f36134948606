"""Attacks that use up time, memory, processes, disk or the graphics card; each is bounded by itself as well."""

from autograder.grading.attacks.attack import LOOP_SECONDS, Attack

THROUGH = "went through"  # printed by a cell that met no limit

CONSUMING = [
    Attack(
        "A20",
        "leaves at once",
        "The process ends itself.",
        "the submission is lost",
        "import os\nos._exit(0)",
        "stopped",
    ),
    Attack(
        "A20",
        "leaves by the door",
        "The kernel's event loop is stopped, as `exit()` asks for.",
        "the submission is lost",
        "import asyncio\nexit()\nasyncio.get_running_loop().stop()\nawait asyncio.sleep(600)",
        "stopped",
    ),
    Attack(
        "A21",
        "deaf loop",
        "A loop ignores interrupts.",
        "the submission is lost",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    pass",
        "stopped",
        seconds=LOOP_SECONDS,
    ),
    Attack(
        "A21",
        "stubborn loop",
        "A loop swallows every exception, interrupts included.",
        "the submission is lost",
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        "stopped",
        seconds=LOOP_SECONDS,
    ),
    Attack(
        "A21",
        "endless wait",
        "The cell awaits what never comes.",
        "the submission is lost",
        "import asyncio\nawait asyncio.sleep(600)",
        "stopped",
        seconds=LOOP_SECONDS,
    ),
    Attack(
        "A22",
        "memory bomb",
        "Memory is taken in steps, up to 3 GB.",
        "no limit",
        f"hoard = [np.ones(100 * 2**17) for _ in range(30)]\nprint({THROUGH!r})",
        "stopped",
        "limit",
    ),
    Attack(
        "A23",
        "fork bomb",
        "64 processes are started, each in a session of its own and deaf to SIGTERM.",
        "no limit, and all 64 stay behind",
        f"""
import os, signal, time
for _ in range(64):
    if os.fork() == 0:
        os.setsid(), signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.execv("/bin/sleep", [MARK, "60"])
time.sleep(1)
print({THROUGH!r})
""",
        "stopped",
        "limit",
    ),
    Attack(
        "A23",
        "thread bomb",
        "64 threads are started that do nothing for a minute.",
        "no limit",
        f"""
import threading, time
for _ in range(64):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
time.sleep(1)
print({THROUGH!r})
""",
        "stopped",
        "limit",
    ),
    Attack(
        "A24",
        "large file",
        "One file of 20 MB is written.",
        "no limit",
        f'open("large", "wb").write(bytes(20 * 2**20))\nprint({THROUGH!r})',
        "stopped",
        "limit",
    ),
    Attack(
        "A24",
        "many files",
        "Twenty files of 1 MB are written, each of which is allowed.",
        "no limit",
        f"""
import time
for number in range(20):
    open(str(number), "wb").write(bytes(2**20))
time.sleep(2)
print({THROUGH!r})
""",
        "stopped",
        "limit",
    ),
    Attack(
        "A22",
        "memory without a name",
        "32 MB are put into a file that exists in memory alone, where no folder shows it.",
        "no limit",
        f"""
import os, time
held = os.memfd_create("held")
for _ in range(32):
    os.write(held, bytes(2**20))
print({THROUGH!r})
""",
        "stopped",
        "limit",
    ),
    Attack(
        "A22",
        "shared memory",
        "64 MB are put into shared memory that stays when the process lets it go.",
        "no limit",
        f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
number = libc.shmget(0, ctypes.c_size_t(64 * 2**20), 0o1600)
if number < 0:
    raise OSError(ctypes.get_errno(), "no shared memory")
place = libc.shmat(number, None, 0)
libc.shmctl(number, 0, None)
ctypes.memset(place, 1, 64 * 2**20)
print({THROUGH!r})
""",
        "stopped",
        "limit",
    ),
    Attack(
        "A24",
        "deleted files",
        "Twenty files of 1 MB are written and deleted, but kept open.",
        "no limit",
        f"""
import os, time
held = []
for number in range(20):
    held.append(open(str(number), "wb", buffering=0))
    os.unlink(str(number))
    held[-1].write(bytes(2**20))
time.sleep(2)
print({THROUGH!r})
""",
        "stopped",
        "limit",
    ),
    Attack(
        "A24",
        "endless output",
        "A loop prints 2 GB.",
        "a line of 50 MB is kept",
        f"for _ in range(200_000):\n    print('x' * 10_000)\nprint({THROUGH!r})",
        "stopped",
        "limit",
    ),
    Attack(
        "A24",
        "message of many parts",
        "One message of 960 MB is sent to the grader, in parts of 48 MB.",
        "all of it is held in nbgrader's memory",
        """
import time, zmq
line, part = get_ipython().kernel.iopub_thread.socket, bytes(48 * 2**20)
for _ in range(20):
    line.send(zmq.Frame(part), zmq.SNDMORE, copy=False)
line.send(b"")
time.sleep(600)
""",
        "stopped",
        "limit",
    ),
    Attack(
        "A25",
        "daemon",
        "A process in a session of its own waits for the next student.",
        "it stays behind",
        """
import subprocess, sys
code = "import os, time; os.fork() and os._exit(0); os.setsid(); time.sleep(60)"
subprocess.run([sys.executable, "-c", code, MARK], check=True)
""",
        "runs on",
        "process left",
    ),
    Attack(
        "A42",
        "graphics card",
        "The graphics card's memory is taken and kept.",
        "no limit",
        f"""
import glob, torch
found = [*glob.glob("/dev/nvidia*"), *glob.glob("/dev/dri/*"), *glob.glob("/dev/kfd")]
for device in found:
    open(device, "r+b")
if not found:
    torch.ones(2**28, device="cuda")
print({THROUGH!r})
""",
        "stopped",
        "limit",
    ),
]
