"""Every wall of the sandbox is tried from inside, as a notebook would."""

import json
import os
import platform
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.grading import namespaces, sandbox
from autograder.grading.pool import KernelPool, Limits
from autograder.grading.sandbox import NAMESPACES, Room

ATTEMPTS = """
import ctypes, json, os, pathlib, signal, socket, subprocess, sys
P = pathlib.Path
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *args):
    if libc.syscall(number, *map(ctypes.c_long, args)) < 0:
        raise OSError(ctypes.get_errno(), "refused")

def connect(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)

def send(path):
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"x", path)

def spy_on(pid):
    return P(f"/proc/{{pid}}/environ").read_bytes()

attempts = {{
    "read the gradebook": lambda: P({course!r}, "gradebook.db").read_bytes(),
    "write the gradebook": lambda: P({course!r}, "gradebook.db").write_bytes(b""),
    "read the sources": lambda: P({course!r}, "build/source/01/01.ipynb").read_bytes(),
    "list the course": lambda: os.listdir({course!r}),
    "read another student's work": lambda: P({course!r}, "submitted/other/01/01.ipynb").read_bytes(),
    "change the mode of the gradebook": lambda: os.chmod(P({course!r}, "gradebook.db"), 0o777),
    "change the time of the gradebook": lambda: os.utime(P({course!r}, "gradebook.db")),
    "follow a link to the gradebook": lambda: P("link").read_bytes(),
    "read the shadow file": lambda: P("/etc/shadow").read_bytes(),
    "read a file in the home of the grader": lambda: P({home!r}).read_bytes(),
    "write into the course library": lambda: P({course_lib!r}, "x").touch(),
    "write into the installed libraries": lambda: P({site!r}, "x").touch(),
    "write to the root folder": lambda: P("/x").touch(),
    "write to /usr": lambda: P("/usr/x").touch(),
    "write to /etc": lambda: P("/etc/x").touch(),
    "change a setting of the kernel": lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY),
    "press a key of the kernel": lambda: os.open("/proc/sysrq-trigger", os.O_WRONLY),
    "read a disk": lambda: os.open(next(iter(sorted(P("/dev").glob("[sv]d*"))), "/dev/vda"), os.O_RDONLY),
    "reach a service by name": lambda: connect({service!r}),
    "open IPv4": lambda: socket.socket(socket.AF_INET),
    "open IPv6": lambda: socket.socket(socket.AF_INET6),
    "open raw packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    "open netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "make a user namespace": lambda: call({unshare}, 0x10000000),
    "clone into a user namespace": lambda: call({clone}, 0x10000000 | 17, 0, 0, 0, 0),
    "mount": lambda: call({mount}, 0, 0, 0, 0, 0),
    "trace a process": lambda: call({ptrace}, 0, 0, 0, 0),
    "use the key ring": lambda: call({keyctl}, 0, -3, 0),
    "load BPF": lambda: call({bpf}, 0, 0, 0),
    "set up io_uring": lambda: call(425, 1, 0),
    "signal the grader": lambda: os.kill({grader}, 0),
    "spy on the grader": lambda: spy_on({grader}),
    "gain rights by a set-uid program": lambda: subprocess.run(["/usr/bin/su", "-c", "true"], check=True,
        stdin=subprocess.DEVNULL, capture_output=True),
    "make a file in memory": lambda: os.memfd_create("x"),
    "make shared memory": lambda: call({shmget}, 0, 4096, 0o1600),
    "hide its files from its keeper": lambda: call({prctl}, 4, 0, 0, 0, 0),
    "send a datagram to a service": lambda: send({datagrams!r}),
    "take a terminal": lambda: os.open("/dev/tty", os.O_RDWR),
}}
found = {{}}
for name, attempt in attempts.items():
    try:
        attempt()
        found[name] = "got through"
    except (OSError, subprocess.CalledProcessError) as error:
        found[name] = ""
status = dict(line.split(":", 1) for line in P("/proc/self/status").read_text().splitlines())
facts = {{name: status[name].strip() for name in ("CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")}}
try:
    facts["processes"] = len([name for name in os.listdir("/proc") if name.isdigit()])
except OSError:
    facts["processes"] = 0
facts["files"] = sorted(os.readlink(f"/proc/self/fd/{{n}}") for n in os.listdir("/proc/self/fd")
    if os.path.lexists(f"/proc/self/fd/{{n}}"))
facts["environment"] = sorted(os.environ)
facts["where"] = [os.getcwd(), os.path.expanduser("~")]
facts["path"] = sys.path
print(json.dumps([found, facts]))
"""
NAMES = [line.split('"')[1] for line in ATTEMPTS.splitlines() if line.startswith('    "') and '": lambda' in line]
NUMBERS = {
    "x86_64": {
        "unshare": 272,
        "clone": 56,
        "mount": 165,
        "ptrace": 101,
        "keyctl": 250,
        "bpf": 321,
        "shmget": 29,
        "prctl": 157,
    },
    "aarch64": {
        "unshare": 97,
        "clone": 220,
        "mount": 40,
        "ptrace": 117,
        "keyctl": 219,
        "bpf": 280,
        "shmget": 194,
        "prctl": 167,
    },
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a course folder with a gradebook, a source and another student's work."""
    root = tmp_path_factory.mktemp("course")
    for name in ("gradebook.db", "build/source/01/01.ipynb", "submitted/other/01/01.ipynb"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret")
    return root


@pytest.fixture(scope="module")
def seen(walled_pool: KernelPool, course: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Try everything from inside one kernel."""
    work = course / "autograded" / "me" / "01"
    work.mkdir(parents=True, exist_ok=True)
    link = work / "link"
    if not link.is_symlink():
        link.symlink_to(course / "gradebook.db")
    import course_lib

    with socket.socket(socket.AF_UNIX) as service, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        where = f"{walled_pool.folder}/service-{walled_pool.kind}"
        datagrams.bind(f"{where}-datagrams")
        service.bind(where)
        service.listen()
        source = ATTEMPTS.format(
            course=str(course),
            home=next((str(path) for path in Path.home().iterdir() if path.is_file()), str(course / "gradebook.db")),
            course_lib=str(Path(str(course_lib.__file__)).parent),
            site=str(Path(pytest.__file__).parent.parent),
            service=where,
            datagrams=f"{where}-datagrams",
            grader=os.getpid(),
            **NUMBERS[platform.machine()],
        )
        with walled_pool.kernel(work) as kernel:
            found = kernel.execute(source)
    assert found.status == "ok", found.outputs
    attempts, facts = json.loads(found.outputs[0]["text"])
    return attempts, facts


@pytest.mark.parametrize("attempt", NAMES)
def test_a_notebook_cannot(attempt: str, seen: tuple[dict[str, str], dict[str, Any]]) -> None:
    assert seen[0][attempt] == ""


def test_the_probe_would_notice_a_missing_wall(warm_pool: KernelPool, course: Path) -> None:
    room = Room(sandbox.NONE, warm_pool.new_folder())
    process = warm_pool.fork("probe", room, Limits(), secret=str(course / "gradebook.db"))
    walls = process.wait_ready()["walls"]
    process.close()
    assert not walls["other files unreadable"]
    assert not walls["no network"]


def test_a_notebook_has_no_rights_left(seen: tuple[dict[str, str], dict[str, Any]]) -> None:
    facts = seen[1]
    assert {int(facts[name], 16) for name in ("CapEff", "CapAmb")} == {0}
    assert facts["NoNewPrivs"] == "1"
    assert facts["Seccomp"] == "2"


def test_a_notebook_inherits_no_file_and_no_variable_of_the_grader(seen, walled_pool: KernelPool) -> None:
    facts = seen[1]
    own = ("socket:", "pipe:", "anon_inode:", "/dev/null", "/proc/")
    assert [name for name in facts["files"] if not name.startswith(own)] == []
    assert "PYTEST_CURRENT_TEST" not in facts["environment"]
    assert "PYTEST_CURRENT_TEST" in os.environ


def test_only_its_own_processes_are_seen(seen, walled_pool: KernelPool) -> None:
    most = 2 if walled_pool.kind == NAMESPACES else 0
    assert seen[1]["processes"] <= most


def test_the_paths_inside_tell_nothing_of_the_student(seen, walled_pool: KernelPool) -> None:
    if walled_pool.kind == NAMESPACES:
        assert seen[1]["where"] == ["/home/student/work", "/home/student"]


def test_a_course_folder_that_is_also_the_virtual_environment_stays_hidden(monkeypatch, tmp_path: Path) -> None:
    for name in ("lib", "bin", "submitted"):
        (tmp_path / name).mkdir()
    (tmp_path / "pyvenv.cfg").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    shown = sandbox.library_folders()
    assert str(tmp_path / "lib") in shown
    assert str(tmp_path) not in shown
    assert not any("submitted" in path for path in shown)


def test_no_entry_of_the_import_path_is_shown_as_such(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not any(path.startswith(str(tmp_path)) for path in sandbox.library_folders())


def test_the_parts_of_a_folder_leave_out_what_is_hidden(tmp_path: Path) -> None:
    for name in ("bin", "share/fonts", "share/exchange/work"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "share" / "link").symlink_to("exchange")
    hidden = [str(tmp_path / "share" / "exchange")]
    parts = [str(tmp_path / "bin"), str(tmp_path / "share" / "fonts")]
    assert namespaces.parts_without(str(tmp_path), hidden) == parts
    assert namespaces.parts_without(str(tmp_path), []) == [str(tmp_path)]


@pytest.fixture
def exchange() -> Iterator[Path]:
    """Put a file into nbgrader's exchange, where this user may."""
    folder = Path(namespaces.HIDDEN[0])
    made = not folder.exists()
    try:
        folder.mkdir(exist_ok=True)
        file = folder / f"submission-{os.getpid()}"
        file.write_text("another student's work")
    except OSError as error:
        pytest.skip(f"user: nbgrader's exchange cannot be written here ({error.strerror})")
    yield file
    file.unlink()
    if made:
        folder.rmdir()


def test_the_exchange_of_nbgrader_is_hidden(exchange: Path, walled_pool: KernelPool, tmp_path: Path) -> None:
    source = f"import pathlib, os; print(pathlib.Path({str(exchange)!r}).exists(), os.path.exists('/usr/bin/env'))"
    read = f"open({str(exchange)!r}).read()"
    with walled_pool.kernel(tmp_path) as kernel:
        assert kernel.execute(read).outputs[-1].ename in ("FileNotFoundError", "PermissionError")
        hidden = walled_pool.kind == NAMESPACES
        assert kernel.execute(source).outputs[0]["text"] == f"{not hidden} True\n"


WORKS_INSIDE = """
import multiprocessing, pathlib, subprocess, sys, tempfile, torch
pathlib.Path("kept.txt").write_text("kept")
pathlib.Path.home().joinpath("x").touch()
tempfile.TemporaryFile().write(b"x")
print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True, check=True).stdout)
import course_lib.attention, autograder
torch.set_num_threads(2)
print((torch.ones(300, 300) @ torch.ones(300, 300)).sum().item())
"""
PARALLEL = """
import multiprocessing, torch
with multiprocessing.get_context("fork").Pool(2) as workers:
    print(workers.map(abs, [-1, -2]))
data = torch.utils.data.DataLoader(torch.arange(4.0), batch_size=2, num_workers=2)
print([batch.tolist() for batch in data])
"""


def test_honest_work_is_not_hindered(walled_pool: KernelPool, tmp_path: Path) -> None:
    with walled_pool.kernel(tmp_path) as kernel:
        found = kernel.execute(WORKS_INSIDE)
        assert found.status == "ok", found.outputs
        assert found.outputs[0]["text"] == "42\n\n27000000.0\n"
    assert (tmp_path / "kept.txt").read_text() == "kept"


def test_worker_processes_and_data_loaders_work_in_the_full_sandbox(warm_pool: KernelPool, tmp_path: Path) -> None:
    if warm_pool.kind != NAMESPACES:
        pytest.skip("kernel: user namespaces are off, and the fallback refuses the sockets that workers share")
    with warm_pool.kernel(tmp_path) as kernel:
        found = kernel.execute(PARALLEL)
        assert found.status == "ok", found.outputs
        assert found.outputs[0]["text"] == "[1, 2]\n[[0.0, 1.0], [2.0, 3.0]]\n"
