"""Refuse the system calls that a notebook never needs, by a seccomp filter over the whole process.

The one kept binding, `pyseccomp`, has had no release since 2021 and needs libseccomp on the machine, which many
lack. The filter is forty lines of classic BPF, so it is assembled here; the numbers are the kernel's own tables.
It is put on after the kernel's sockets stand: libzmq ends the process when an early call of its own is refused.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct

from autograder.grading import linux

SECCOMP_SET_MODE_FILTER = 1
SECCOMP_FILTER_FLAG_TSYNC = 1
ALLOW = 0x7FFF0000
REFUSE = 0x00050000  # plus the error number
KILL_PROCESS = 0x80000000
LOAD_WORD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
CALL_NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT = (
    0,
    4,
    16,
    24,
)  # offsets in struct seccomp_data, little endian
LOW_WORD = 0xFFFFFFFF
X32_CALLS = 0x40000000  # the second, 32-bit set of calls of x86_64
DATAGRAMS = 2  # this bit is set in SOCK_DGRAM and in SOCK_RAW, which means the same, and in no other kind or flag
NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Beside what changes the system, refused is memory that no file and no process is seen to hold: memfd and shmget.
# Above 423 the numbers are the same on both.
COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447,
}  # fmt: skip
ALWAYS_REFUSED = {
    "x86_64": COMMON | {
        "ptrace": 101, "syslog": 103, "personality": 135, "uselib": 134, "vhangup": 153, "modify_ldt": 154,
        "pivot_root": 155, "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165,
        "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171,
        "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179, "nfsservctl": 180,
        "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246, "add_key": 248, "request_key": 249,
        "keyctl": 250, "unshare": 272, "perf_event_open": 298, "name_to_handle_at": 303, "open_by_handle_at": 304,
        "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "finit_module": 313, "kexec_file_load": 320, "shmget": 29, "memfd_create": 319, "bpf": 321,
        "userfaultfd": 323,
    },
    "aarch64": COMMON | {
        "umount2": 39, "mount": 40, "pivot_root": 41, "nfsservctl": 42, "chroot": 51, "vhangup": 58, "quotactl": 60,
        "acct": 89, "personality": 92, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106,
        "clock_settime": 112, "syslog": 116, "ptrace": 117, "reboot": 142, "sethostname": 161, "setdomainname": 162,
        "settimeofday": 170, "adjtimex": 171, "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224,
        "swapoff": 225, "perf_event_open": 241, "name_to_handle_at": 264, "open_by_handle_at": 265,
        "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
        "finit_module": 273, "shmget": 194, "memfd_create": 279, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
    },
}  # fmt: skip
# What Landlock leaves open: owners, modes, times and attributes of files, and the sockets of other programs.
REFUSED_WITHOUT_NAMESPACES = {
    "x86_64": {
        "connect": 42, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "rt_sigqueueinfo": 129,
        "utime": 132, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198,
        "fremovexattr": 199, "utimes": 235, "fchownat": 260, "futimesat": 261, "fchmodat": 268, "utimensat": 280,
        "rt_tgsigqueueinfo": 297, "pidfd_send_signal": 424, "fchmodat2": 452,
    },
    "aarch64": {
        "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
        "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "utimensat": 88, "rt_sigqueueinfo": 138,
        "connect": 203, "rt_tgsigqueueinfo": 240, "pidfd_send_signal": 424, "fchmodat2": 452,
    },
}  # fmt: skip
KILLS = {"x86_64": (62, 200, 234), "aarch64": (129, 130, 131)}  # kill, tkill, tgkill
SOCKET = {"x86_64": 41, "aarch64": 198}
SOCKET_PAIR = {"x86_64": 53, "aarch64": 199}
PRCTL = {"x86_64": 157, "aarch64": 167}
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE3 = 435


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value & LOW_WORD)


def assemble(machine: str, namespaces: bool, own_signals_only: int | None = None) -> bytes:
    """Write the filter's program.

    Args:
        machine: The architecture's name.
        namespaces: Whether namespaces hide what Landlock cannot guard.
        own_signals_only: The process that alone may be signaled; None leaves signals to the other layers.
    """
    refused = dict(ALWAYS_REFUSED[machine])
    if not namespaces:
        refused |= REFUSED_WITHOUT_NAMESPACES[machine]
    refuse = _instruction(RETURN, REFUSE | errno.EPERM)
    lines = [
        _instruction(LOAD_WORD, ARCHITECTURE),
        _instruction(JUMP_EQUAL, ARCHITECTURES[machine], if_true=1),
        _instruction(RETURN, KILL_PROCESS),
        _instruction(LOAD_WORD, CALL_NUMBER),
    ]
    if machine == "x86_64":
        lines += [_instruction(JUMP_AT_LEAST, X32_CALLS, if_false=1), refuse]
    for number in sorted(refused.values()):
        lines += [_instruction(JUMP_EQUAL, number, if_false=1), refuse]
    # glibc falls back to clone, whose flags can be looked at, when clone3 does not exist.
    lines += [_instruction(JUMP_EQUAL, CLONE3, if_false=1), _instruction(RETURN, REFUSE | errno.ENOSYS)]
    lines += _on_first_argument(CLONE[machine], [_instruction(JUMP_ANY_BIT, NEW_NAMESPACES, if_false=1), refuse])
    only_unix = [_instruction(JUMP_EQUAL, socket.AF_UNIX, if_true=1), refuse]
    if not namespaces:  # a datagram reaches another program's socket by its path, without `connect`
        kind = _instruction(LOAD_WORD, SECOND_ARGUMENT)
        only_unix += [kind, _instruction(JUMP_ANY_BIT, DATAGRAMS, if_false=1), refuse]
    for number in (SOCKET[machine], SOCKET_PAIR[machine]):
        lines += _on_first_argument(number, only_unix)
    # By this a process would hide its open files from its keeper.
    undumpable = [_instruction(JUMP_EQUAL, linux.PR_SET_DUMPABLE, if_false=1), refuse]
    lines += _on_first_argument(PRCTL[machine], undumpable)
    if own_signals_only is not None:
        for number in KILLS[machine]:
            lines += _on_first_argument(number, [_instruction(JUMP_EQUAL, own_signals_only, if_true=1), refuse])
    return b"".join([*lines, _instruction(RETURN, ALLOW)])


def _on_first_argument(number: int, test: list[bytes]) -> list[bytes]:
    """Apply a test to the first argument of one call; the call's number is loaded again after it."""
    inside = [_instruction(LOAD_WORD, FIRST_ARGUMENT), *test, _instruction(LOAD_WORD, CALL_NUMBER)]
    return [_instruction(JUMP_EQUAL, number, if_false=len(inside)), *inside]


def apply_filter(namespaces: bool, own_signals_only: int | None = None) -> None:
    """Put the filter on every thread of this process, for good; needs `no_new_privileges` before.

    Raises:
        OSError: The kernel has no seccomp filters, or forbids them here.
    """
    machine = linux.machine()
    code = assemble(machine, namespaces, own_signals_only)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    number = linux.NUMBERS[machine]["seccomp"]
    thread = linux.syscall(
        number,
        ctypes.c_uint(SECCOMP_SET_MODE_FILTER),
        ctypes.c_uint(SECCOMP_FILTER_FLAG_TSYNC),
        ctypes.byref(program),
    )
    if thread:
        raise OSError(errno.EPERM, f"thread {thread} could not take the filter")
