"""The filter is run by an interpreter of its own here, for both architectures, whatever this machine is."""

import errno
import socket
import struct

import pytest

from autograder.grading import linux, seccomp

MACHINES = ["x86_64", "aarch64"]
READ = {"x86_64": (0, 1), "aarch64": (63, 64)}
THREAD_FLAGS = 0x3D0F00  # what glibc gives clone for a thread
NEW_USER = 0x10000000
REFUSED = seccomp.REFUSE | errno.EPERM


def run_filter(program: bytes, machine: int, number: int, argument: int = 0, second: int = 0) -> int:
    """Interpret classic BPF over one system call."""
    data = struct.pack("<IIQQQ", number, machine, 0, argument, second)
    lines = list(struct.iter_unpack("HBBI", program))
    accumulator, position = 0, 0
    while True:
        code, if_true, if_false, value = lines[position]
        position += 1
        if code == seccomp.RETURN:
            return value
        if code == seccomp.LOAD_WORD:
            (accumulator,) = struct.unpack_from("<I", data, value)
            continue
        holds = {
            seccomp.JUMP_EQUAL: accumulator == value,
            seccomp.JUMP_AT_LEAST: accumulator >= value,
            seccomp.JUMP_ANY_BIT: bool(accumulator & value),
        }[code]
        position += if_true if holds else if_false


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    """Name each architecture in turn."""
    return request.param


def verdict(machine: str, number: int, argument: int = 0, namespaces: bool = True, alone: int | None = None) -> int:
    """Ask the filter of a machine about one call."""
    program = seccomp.assemble(machine, namespaces, alone)
    return run_filter(program, seccomp.ARCHITECTURES[machine], number, argument)


def test_every_listed_call_is_refused_and_others_pass(machine: str) -> None:
    for number in seccomp.ALWAYS_REFUSED[machine].values():
        assert verdict(machine, number) == REFUSED
    for number in READ[machine]:
        assert verdict(machine, number) == seccomp.ALLOW


def test_calls_of_another_architecture_end_the_process(machine: str) -> None:
    program = seccomp.assemble(machine, namespaces=True)
    assert run_filter(program, 0x40000003, READ[machine][0]) == seccomp.KILL_PROCESS


def test_the_second_set_of_calls_of_x86_is_refused() -> None:
    assert verdict("x86_64", seccomp.X32_CALLS + 1) == REFUSED


def test_only_sockets_of_this_machine_can_be_made(machine: str) -> None:
    number = seccomp.SOCKET[machine]
    assert verdict(machine, number, socket.AF_UNIX) == seccomp.ALLOW
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET):
        assert verdict(machine, number, family) == REFUSED


def test_without_namespaces_no_datagram_can_be_sent_by_path(machine: str) -> None:
    architecture = seccomp.ARCHITECTURES[machine]
    for namespaces in (True, False):
        program = seccomp.assemble(machine, namespaces)
        for number in (seccomp.SOCKET[machine], seccomp.SOCKET_PAIR[machine]):
            for flags in (0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK):
                for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
                    assert run_filter(program, architecture, number, socket.AF_UNIX, kind | flags) == seccomp.ALLOW
                for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
                    found = run_filter(program, architecture, number, socket.AF_UNIX, kind | flags)
                    assert found == (seccomp.ALLOW if namespaces else REFUSED)


def test_memory_that_nothing_is_seen_to_hold_cannot_be_made(machine: str) -> None:
    assert {"memfd_create", "memfd_secret", "shmget"} <= set(seccomp.ALWAYS_REFUSED[machine])


def test_a_process_cannot_hide_its_files(machine: str) -> None:
    assert verdict(machine, seccomp.PRCTL[machine], linux.PR_SET_DUMPABLE) == REFUSED
    assert verdict(machine, seccomp.PRCTL[machine], linux.PR_SET_DUMPABLE + 1) == seccomp.ALLOW


def test_threads_can_be_made_but_no_namespaces(machine: str) -> None:
    assert verdict(machine, seccomp.CLONE[machine], THREAD_FLAGS) == seccomp.ALLOW
    assert verdict(machine, seccomp.CLONE[machine], NEW_USER) == REFUSED
    assert verdict(machine, seccomp.CLONE3) == seccomp.REFUSE | errno.ENOSYS


def test_without_namespaces_files_of_others_and_their_sockets_are_out_of_reach(machine: str) -> None:
    for number in seccomp.REFUSED_WITHOUT_NAMESPACES[machine].values():
        assert verdict(machine, number, namespaces=True) == seccomp.ALLOW
        assert verdict(machine, number, namespaces=False) == REFUSED


def test_signals_can_be_kept_to_the_process_itself(machine: str) -> None:
    for number in seccomp.KILLS[machine]:
        assert verdict(machine, number, 77) == seccomp.ALLOW
        assert verdict(machine, number, 77, alone=77) == seccomp.ALLOW
        assert verdict(machine, number, 78, alone=77) == REFUSED
        assert verdict(machine, READ[machine][0], 78, alone=77) == seccomp.ALLOW
