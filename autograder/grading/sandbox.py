"""Choose the walls around a notebook and put them up; say which stand, by trying each from inside."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import socket
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import CourseError
from autograder.grading import landlock, linux, namespaces, seccomp
from autograder.grading.limits import Limits, apply_limits
from autograder.grading.namespaces import HOME, WORK, Place

NAMESPACES, LANDLOCK, NONE, AUTO = "namespaces", "landlock", "none", "auto"
KINDS = (NAMESPACES, LANDLOCK)  # in the order of preference
CHOICES = (AUTO, *KINDS, NONE)
PACKAGES = ("course_lib", "autograder")
PRIVATE = ("home", "tmp")  # folders beside the sockets, where there is no private file system
NOT_STOPPED = {
    NAMESPACES: "",
    LANDLOCK: (
        "The sandbox is the weaker one, because this system forbids user namespaces: a notebook can see that files "
        "exist and how large they are, share /dev/shm with other programs, and count this user's processes; memory, "
        "processes and disk use are watched ten times a second instead of being walled in."
    ),
    NONE: (
        "There is no sandbox: a notebook can read and change whatever this user can, the gradebook and other "
        "students' work included, and use the network."
    ),
}


class SandboxError(CourseError):
    """The walls that were asked for cannot be put up here."""


@dataclass(frozen=True)
class Room:
    """Where one process lives.

    Args:
        kind: The walls around it.
        folder: A private folder for its sockets, the same path outside and inside.
        work: The only folder of the old world that it may change, or None.
    """

    kind: str
    folder: str
    work: str | None = None

    @property
    def home(self) -> str:
        """Return the home folder as seen from inside."""
        return HOME if self.kind == NAMESPACES else os.path.join(self.folder, "home")

    @property
    def temporary(self) -> str:
        """Return the folder for temporary files as seen from inside."""
        return "/tmp" if self.kind == NAMESPACES else os.path.join(self.folder, "tmp")

    @property
    def start(self) -> str:
        """Return the folder in which the process starts, as seen from inside."""
        if self.work is None:
            return self.home
        return WORK if self.kind == NAMESPACES else self.work


def library_folders() -> list[str]:
    """List what a notebook needs to be able to import: an allow-list, never `sys.path`.

    A virtual environment may lie inside the course's folder, or be it, so only its libraries are listed.
    """
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    found = {Path(path) for name in names if (path := sysconfig.get_path(name))}
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        found |= {Path(prefix) / name for name in ("bin", "lib", "lib64", "pyvenv.cfg")}
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        found |= {Path(path) for path in (spec.submodule_search_locations if spec else None) or ()}
    existing = {str(path) for path in found if path.exists() and not path.is_relative_to("/usr")}
    kept: list[str] = []
    for path in sorted(existing):
        if not any(Path(path).is_relative_to(above) for above in kept):
            kept.append(path)
    return kept


def before_fork(room: Room) -> None:
    """Prepare the keeper, so that its child starts in its own process namespace."""
    if room.kind == NAMESPACES:
        namespaces.new_users_and_processes()
    else:
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1, "PR_SET_CHILD_SUBREAPER")


def enter(room: Room, limits: Limits) -> None:
    """Confine this process, which has one thread, except for the calls that `seal` refuses later.

    Raises:
        OSError: A wall cannot be put up; the process must not go on.
    """
    places = [Place(path, path) for path in library_folders()]
    if room.kind == NAMESPACES:
        places.append(Place(room.folder, room.folder, writable=True))
        if room.work is not None:
            places.append(Place(room.work, WORK, writable=True))
        namespaces.new_world(places, limits)
    else:
        for name in PRIVATE:
            os.makedirs(os.path.join(room.folder, name), mode=0o700, exist_ok=True)
    os.chdir(room.start)
    apply_limits(limits, own_user_namespace=room.kind == NAMESPACES)
    if room.kind == NONE:
        return
    linux.drop_capabilities()
    linux.no_new_privileges()
    if room.kind == LANDLOCK:
        usr = namespaces.parts_without("/usr", namespaces.hidden_folders())
        system = (*usr, "/bin", "/lib", "/lib64", "/sbin", *namespaces.SHARED_FILES)
        writable = [room.folder, *([room.work] if room.work else [])]
        landlock.restrict([*system, *(place.source for place in places)], writable)


def seal(room: Room) -> None:
    """Refuse dangerous system calls from here on, in all threads."""
    if room.kind == NONE:
        return
    alone = room.kind == LANDLOCK and not landlock.scopes_signals()
    seccomp.apply_filter(room.kind == NAMESPACES, own_signals_only=os.getpid() if alone else None)


def walls_that_stand(room: Room, secret: str) -> dict[str, bool]:
    """Try each wall from inside; True means that it held.

    Args:
        room: Where this process lives.
        secret: A file outside the allow-list, which exists and this user may read and write.
    """
    tries: dict[str, Callable[[], object]] = {
        "other files unreadable": lambda: Path(secret).read_bytes(),
        "other files unwritable": lambda: os.close(os.open(secret, os.O_WRONLY)),
        "libraries read-only": lambda: Path(library_folders()[0], "course-was-here").touch(),
        "no network": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        "no new namespaces": lambda: linux.unshare(linux.CLONE_NEWUSER),
        "no mounts": lambda: linux.mount("none", room.start, "tmpfs"),
        "no keys of the kernel": lambda: linux.syscall(seccomp.ALWAYS_REFUSED[linux.machine()]["keyctl"], 0, -3, 0),
    }
    if room.kind == NAMESPACES:
        tries["own processes only"] = lambda: os.kill(os.getppid() or 2**22 - 1, 0)
    held = {name: _refused(attempt) for name, attempt in tries.items()}
    held["no capabilities"] = "CapEff:\t0000000000000000" in _own_status()
    return held


def _refused(attempt: Callable[[], object]) -> bool:
    expected = (errno.EPERM, errno.EACCES, errno.ENOENT, errno.EROFS, errno.ESRCH)
    try:
        attempt()
    except OSError as error:
        return error.errno in expected
    return False


def _own_status() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/self/status").read_text()
    return "CapEff:\t0000000000000000"  # without /proc inside, the calls above have shown it already
