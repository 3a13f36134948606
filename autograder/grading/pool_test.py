"""A pool chooses the strongest sandbox that works, says what it does not stop, and leaves nothing behind."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from autograder.grading import sandbox
from autograder.grading.pool import KernelPool, Report, probe
from autograder.grading.sandbox import LANDLOCK, NAMESPACES, NOT_STOPPED, SandboxError


def test_the_weaker_sandbox_says_what_it_does_not_stop() -> None:
    assert NOT_STOPPED[NAMESPACES] == ""
    assert "user namespaces" in NOT_STOPPED[LANDLOCK]
    assert "no sandbox" in NOT_STOPPED[sandbox.NONE]


def test_without_any_sandbox_grading_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        KernelPool, "try_kind", lambda self, kind: sandbox_report(kind, works=False, reason="forbidden here")
    )
    pool = KernelPool(warm=False)
    with pytest.raises(SandboxError, match=r"No sandbox works here .*--sandbox none"):
        pool.start()
    pool.close()


def sandbox_report(kind: str, works: bool, reason: str):
    """Make a probe's report."""
    return Report(kind, works, reason, {})


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(SandboxError, match="must be one of"):
        KernelPool("docker")


def test_a_probe_reports_each_kind() -> None:
    reports = {report.kind: report for report in probe()}
    assert set(reports) == {NAMESPACES, LANDLOCK}
    for report in reports.values():
        assert report.works == (report.reason == "")
        assert not report.works or all(report.walls.values())


ORDINARY = """
import os, sys, tempfile, warnings
from autograder.grading.pool import KernelPool
assert os.getuid() == int(sys.argv[1])
for kind in ("namespaces", "landlock"):
    with KernelPool(kind) as pool, tempfile.TemporaryDirectory() as work:
        with pool.kernel(work) as kernel:
            found = kernel.execute("import torch, os; open('x', 'w').close(); print(torch.ones(2).sum().item())")
            print(kind, found.status, found.outputs[0]["text"].strip(), os.listdir(work))
"""
SOMEBODY = 1001


def test_everything_works_as_an_ordinary_user(tmp_path: Path) -> None:
    """Start again as a user without any rights; a private mount opens the path to an interpreter in root's home."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("kernel: these tests run as an ordinary user already, or setpriv is missing")
    prefix = sys.base_prefix
    script = (
        f"mkdir {tmp_path}/python && mount --bind {prefix} {tmp_path}/python && chmod 755 {tmp_path} && "
        f"if ! setpriv --reuid={SOMEBODY} --regid={SOMEBODY} --clear-groups test -r {prefix}/bin; then "
        f"mount -t tmpfs -o mode=755 none /{Path(prefix).parts[1]} && mkdir -p {prefix} && "
        f"mount --bind {tmp_path}/python {prefix}; fi && cd / && HOME=/tmp "
        f"exec setpriv --reuid={SOMEBODY} --regid={SOMEBODY} --clear-groups --no-new-privs --bounding-set=-all "
        f'{sys.executable} -P -c "$CODE" {SOMEBODY}'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, env={**os.environ, "CODE": ORDINARY}
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"kernel: no private mounts here ({done.stderr.strip()})")
    if "SandboxError" in done.stderr:
        pytest.skip(f"kernel: {done.stderr.strip().splitlines()[-1]}")
    assert done.stdout == "namespaces ok 2.0 ['x']\nlandlock ok 2.0 ['x']\n", done.stderr


def test_a_pool_that_is_closed_leaves_no_folder_and_gives_no_kernel() -> None:
    pool = KernelPool(warm=False)
    try:
        pool.start()
    except SandboxError as error:
        pytest.skip(f"kernel: no sandbox works here ({error})")
    folder = Path(pool.folder)
    assert folder.is_dir()
    pool.close()
    assert not folder.exists()
    with pytest.raises(SandboxError, match="has ended"), pool.kernel(tempfile.gettempdir()):
        pass
