"""The Linux calls that Python's standard library does not offer; each raises `OSError` with the call's name.

Python 3.12 has `os.unshare`, but the course supports 3.11, and mount, prctl and the capability calls are in no
version. A kept library for all of them was looked for and not found, so they are spelled out here, in one place.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

MOUNT_ATTR_RDONLY = 1
MOUNT_ATTR_NOSUID = 2
MOUNT_ATTR_NODEV = 4
AT_FDCWD = -100
AT_RECURSIVE = 0x8000

CAPABILITY_VERSION_3 = 0x20080522
LAST_CAPABILITY = 63

# Call numbers that differ between the two architectures (arch/x86/entry/syscalls, asm-generic/unistd.h).
NUMBERS = {
    "x86_64": {"pivot_root": 155, "capset": 126, "seccomp": 317},
    "aarch64": {"pivot_root": 41, "capset": 91, "seccomp": 277},
}
MOUNT_SETATTR = 442  # newer calls have the same number everywhere


class UnsupportedMachine(OSError):
    """The sandbox knows the calls of 64-bit x86 and ARM Linux only."""


@functools.cache
def libc() -> ctypes.CDLL:
    """Load the C library, keeping its errno."""
    return ctypes.CDLL(None, use_errno=True)


def machine() -> str:
    """Return the architecture's name.

    Raises:
        UnsupportedMachine: The call numbers of this machine are not known, or Python is a 32-bit program.
    """
    name = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    if platform.system() != "Linux" or name not in NUMBERS or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise UnsupportedMachine(0, f"the sandbox needs Linux on x86_64 or aarch64, this is {platform.platform()}")
    return name


def checked(result: int, what: str) -> int:
    """Return the result of a call, or raise its error."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *args: object) -> int:
    """Make a system call by its number."""
    return checked(libc().syscall(ctypes.c_long(number), *args), f"system call {number}")


def prctl(option: int, value: int = 0, what: str = "prctl") -> int:
    """Change a property of this process."""
    zero = ctypes.c_ulong(0)
    return checked(libc().prctl(option, ctypes.c_ulong(value), zero, zero, zero), what)


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    checked(libc().unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, options: str | None = None) -> None:
    """Mount something."""
    text = [None if item is None else os.fsencode(item) for item in (source, target, kind, options)]
    result = libc().mount(text[0], text[1], text[2], ctypes.c_ulong(flags), text[3])
    checked(result, f"mount {source} on {target}")


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


def make_read_only(path: str, recursive: bool = True) -> None:
    """Make a mount read-only, with all that is mounted below it (Linux 5.12)."""
    attributes = _MountAttributes(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, 0, 0)
    syscall(
        MOUNT_SETATTR,
        ctypes.c_int(AT_FDCWD),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.c_uint(AT_RECURSIVE if recursive else 0),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )


def change_root(path: str) -> None:
    """Make a mounted folder the root, and let the old root go."""
    os.chdir(path)
    dot = ctypes.c_char_p(b".")
    syscall(NUMBERS[machine()]["pivot_root"], dot, dot)
    checked(libc().umount2(b".", MNT_DETACH), "umount the old root")
    os.chdir("/")


def die_with_parent(signal_number: int, parent: int) -> None:
    """Ask for a signal when the parent ends; leave at once if it has ended already."""
    prctl(PR_SET_PDEATHSIG, signal_number, "PR_SET_PDEATHSIG")
    if os.getppid() != parent:
        os._exit(1)


def no_new_privileges() -> None:
    """Let no program that is started from here gain rights."""
    prctl(PR_SET_NO_NEW_PRIVS, 1, "PR_SET_NO_NEW_PRIVS")


def drop_capabilities() -> None:
    """Give up every capability, for this process and for all that it starts."""
    for capability in range(LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # not there in this kernel, or nothing to give up: capset below decides
            break
    try:
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError:
        pass
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    syscall(NUMBERS[machine()]["capset"], ctypes.byref(header), ctypes.byref(nothing))
