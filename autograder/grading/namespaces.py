"""Build a small world for one process: its own users, processes, network and files, of which only a few exist.

The process that calls this was just forked and has one thread. Nothing is looked up by name once the new root is
being built: every source is opened first, so a folder that lies under /tmp stays reachable.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass

from autograder.grading import linux
from autograder.grading.limits import MEGABYTE, Limits

INSIDE_ID = 1000
HOME = "/home/student"
WORK = "/home/student/work"
NEW_ROOT = "/tmp"  # any folder that surely exists: the new root is mounted on it, unseen from outside
DEVICES = ("null", "zero", "full", "random", "urandom")
SHARED_FILES = (
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/etc/alternatives", "/etc/mime.types"),
    "/sys/devices/system/cpu",
)
HIDDEN = ("/usr/local/share/nbgrader",)  # nbgrader's default exchange, where everybody's work passes through
WRITTEN_FILES = {
    "/etc/passwd": f"student:x:{INSIDE_ID}:{INSIDE_ID}::{HOME}:/bin/sh\n",
    "/etc/group": f"student:x:{INSIDE_ID}:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
HOST_NAME = b"notebook"


@dataclass(frozen=True)
class Place:
    """A file or folder of the old world that exists in the new one.

    Args:
        source: Its path outside.
        target: Its path inside.
        writable: Whether it may be changed inside.
    """

    source: str
    target: str
    writable: bool = False


def new_users_and_processes() -> None:
    """Enter a new user namespace; children of this process start a new process namespace.

    Raises:
        OSError: The kernel forbids it to this user.
    """
    user, group = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWPID)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/gid_map", f"{INSIDE_ID} {group} 1")
    _write("/proc/self/uid_map", f"{INSIDE_ID} {user} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def new_world(places: list[Place], limits: Limits) -> None:
    """Leave the old network, files and names for new ones; called by the first process of the namespace.

    Raises:
        OSError: A step is forbidden or fails.
    """
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS | linux.CLONE_NEWNET)
    linux.checked(linux.libc().sethostname(HOST_NAME, len(HOST_NAME)), "sethostname")
    system = [Place(path, path) for path in ("/usr", *SHARED_FILES)]
    everything = [*system, *places]
    devices = {name: os.open(f"/dev/{name}", os.O_PATH) for name in DEVICES}
    opened = [(place, _open(place.source)) for place in everything]
    links = {path: os.readlink(path) for path in _top_links()}
    folders = [(Place(path, path), _open(path)) for path in _top_folders()]
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("root", NEW_ROOT, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=4m")
    _furnish(links, limits)
    for place, source in [*folders, *opened]:
        if source is not None:
            _bind(place, source)
    for name, source in devices.items():
        _bind(Place(f"/dev/{name}", f"/dev/{name}", writable=True), source)
    for path in hidden_folders():
        linux.mount("hidden", NEW_ROOT + path, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=4k")
    _own_processes()
    linux.make_read_only(NEW_ROOT, recursive=False)
    linux.change_root(NEW_ROOT)


def hidden_folders() -> list[str]:
    """Return the folders below /usr that a notebook is not to see, without links, where they exist."""
    found = (os.path.realpath(path) for path in HIDDEN)
    return [path for path in found if os.path.isdir(path) and path.startswith("/usr/")]


def parts_without(folder: str, hidden: list[str]) -> list[str]:
    """Return the folder, or the largest parts of it that leave out the hidden folders; links are no parts."""
    if folder in hidden:
        return []
    if not any(path.startswith(f"{folder}/") for path in hidden):
        return [folder]
    with os.scandir(folder) as entries:
        children = sorted(entry.path for entry in entries if not entry.is_symlink())
    return [part for child in children for part in parts_without(child, hidden)]


def _open(path: str) -> int | None:
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, os.O_PATH)
    return None


def _top_links() -> list[str]:
    """Find /bin, /lib and the like where they lead into /usr."""
    names = (f"/{entry.name}" for entry in os.scandir("/") if entry.is_symlink())
    return [path for path in names if path.startswith(("/bin", "/lib", "/sbin"))]


def _top_folders() -> list[str]:
    names = (f"/{entry.name}" for entry in os.scandir("/") if entry.is_dir(follow_symlinks=False))
    return [path for path in names if path.startswith(("/bin", "/lib", "/sbin"))]


def _furnish(links: dict[str, str], limits: Limits) -> None:
    """Make the folders that are private to this world."""
    for path, target in links.items():
        os.symlink(target, NEW_ROOT + path)
    for path in ("/etc", "/dev", "/proc", "/sys", "/run", "/var/tmp"):
        os.makedirs(NEW_ROOT + path, exist_ok=True)
    for path, text in WRITTEN_FILES.items():
        _write(NEW_ROOT + path, text)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"{NEW_ROOT}/dev/{name}")
    for path in ("/tmp", HOME, "/dev/shm"):
        os.makedirs(NEW_ROOT + path, exist_ok=True)
        options = f"mode=700,size={limits.disk_mb * MEGABYTE},nr_inodes={limits.files}"
        linux.mount("private", NEW_ROOT + path, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)


def _bind(place: Place, source: int) -> None:
    target = NEW_ROOT + place.target
    if stat.S_ISDIR(os.fstat(source).st_mode):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_RDONLY, 0o644))
    linux.mount(f"/proc/self/fd/{source}", target, None, linux.MS_BIND | linux.MS_REC)
    os.close(source)
    if not place.writable:
        linux.make_read_only(target)


def _own_processes() -> None:
    """Show this world's processes in /proc, read-only: root's own kernel settings must not be writable in there.

    A container that masks parts of /proc forbids the mount; then nothing is shown.
    """
    flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    with contextlib.suppress(PermissionError):
        linux.mount("proc", f"{NEW_ROOT}/proc", "proc", flags)
        linux.make_read_only(f"{NEW_ROOT}/proc")
