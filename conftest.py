"""What every test runs under: no display, no network, shapes checked, and every skip named at the end."""

import os
import socket
from typing import Any

import hypothesis
import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process per core is there already

from jaxtyping import install_import_hook

# Where a float is asked for, a whole number serves.
install_import_hook("course_lib", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

# Nothing is tested by the clock, and a run can be repeated exactly.
hypothesis.settings.register_profile(
    "course", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("course")

ALLOWED_SKIPS = ("kernel:", "hardware:")  # what no package can bring
IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")
LOCAL_HOSTS = ("127.", "::1", "localhost")

skips: dict[str, str] = {}
measured: list[str] = []


def is_local(address: Any) -> bool:
    """Return whether a socket's address is on this machine: a path, or the loopback network."""
    return not isinstance(address, tuple) or str(address[0]).startswith(LOCAL_HOSTS)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves this machine."""
    connect = socket.socket.connect

    def connect_locally(self: socket.socket, address: Any) -> None:
        if not is_local(address):
            raise OSError(f"Tests run offline, and this one asked for {address}.")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect_locally)


def reason_of(report: Any) -> str:
    """Return why a test was skipped."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note down what a test measured, and a skipped test; an expected failure is none."""
    if report.when == "call":
        measured.extend(str(value) for name, value in report.user_properties if name == "measured")
    if report.skipped and not hasattr(report, "wasxfail"):
        skips[report.nodeid] = reason_of(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note down a module that skips itself."""
    if report.skipped:
        skips[report.nodeid] = reason_of(report)


def refused_skips() -> dict[str, str]:
    """Return the skips that a continuous-integration run must not have."""
    return {test: reason for test, reason in skips.items() if not reason.startswith(ALLOWED_SKIPS)}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail in continuous integration when something was skipped that a package could have made possible."""
    if IN_CI and refused_skips() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell what was measured; name what could not be run here, and what to install for it."""
    if measured:
        terminalreporter.section("measured")
        for line in sorted(measured):
            terminalreporter.line(line)
    if not skips:
        return
    terminalreporter.section("not run on this machine")
    for reason in sorted(set(skips.values())):
        tests = sum(found == reason for found in skips.values())
        terminalreporter.line(f"{reason} ({tests} {'test' if tests == 1 else 'tests'})")
    if IN_CI and refused_skips():
        terminalreporter.line("In CI only skips that begin with 'kernel:' or 'hardware:' are allowed.")
