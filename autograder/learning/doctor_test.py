import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from autograder.cli import main
from autograder.learning import doctor
from autograder.learning.doctor import CHAPTER_GB, GIGABYTE, EnvironmentCheck, Finding, findings, verdict

ROOT = Path(__file__).parents[2]
MEBIBYTE = 2**20
LITTLE = Finding("Memory", False, "1.0 GB", passes=True)
MISSING = Finding("torch", False, "is missing", is_package=True)


def test_the_machine_that_runs_the_tests_is_ready() -> None:
    found = findings()
    assert [one for one in found if one.good is False] == []
    assert verdict(found) == "This machine is ready for the course."
    assert {"Python", "numpy", "torch", "jupyterlab", "Memory", "GPU"} <= {one.what for one in found}


def test_a_missing_and_an_old_package_are_named_with_what_to_type() -> None:
    missing = doctor.package(Requirement("nobody-has-this>=1"))
    old = doctor.package(Requirement("numpy>=99"))
    assert (missing.good, missing.words) == (False, "is missing")
    assert 'pip install -c constraints.txt "nobody-has-this>=1"' in missing.advice
    assert old.good is False


def test_a_container_with_little_memory_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(str(GIGABYTE))
    monkeypatch.setattr(doctor, "CGROUP_LIMITS", (limit,))
    assert doctor.memory().good is False
    assert doctor.memory().words == "1.0 GB"


def test_a_container_without_a_limit_has_the_machines_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CGROUP_LIMITS", (tmp_path / "none",))
    machine = doctor.total_memory()
    (tmp_path / "memory.max").write_text("max")
    monkeypatch.setattr(doctor, "CGROUP_LIMITS", (tmp_path / "memory.max",))
    assert doctor.total_memory() == machine


def test_an_old_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    assert doctor.python().good is False


def test_a_pytorch_that_does_not_load_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert doctor.torch_works().good is False
    assert "no chapter needs one" in doctor.gpu().words


def test_a_lost_kernel_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert [one.good for one in doctor.pages()] == [False, False]


def test_the_table_says_in_words_what_is_wrong_and_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Finding("Disk", False, "<b>full</b>", "Make room.")
    monkeypatch.setattr(doctor, "findings", lambda course: [Finding("Python", True, "3.11"), bad])
    shown = EnvironmentCheck()._repr_html_()
    assert "1 of these need your attention: Disk." in shown
    assert "&lt;b&gt;full&lt;/b&gt;. Make room." in shown
    assert "look here  Disk" in str(EnvironmentCheck())


def test_good_packages_are_folded_and_a_bad_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Finding("numpy", True, "2.0", is_package=True), Finding("rich", False, "is missing", "x", is_package=True)]
    monkeypatch.setattr(doctor, "findings", lambda course: found)
    open_part, folded = EnvironmentCheck()._repr_html_().split("<details>")
    assert "rich" in open_part
    assert "numpy" not in open_part
    assert "Packages that are good: 1" in folded
    assert "numpy" in folded


@pytest.mark.parametrize(
    ("arguments", "found", "status"),
    [
        (("doctor",), [LITTLE], 1),
        (("doctor", "--installed"), [LITTLE], 0),
        (("doctor", "--installed"), [LITTLE, MISSING], 1),
    ],
    ids=["before a chapter", "while an image is built", "an image without PyTorch"],
)
def test_little_memory_fails_no_build_and_a_missing_package_does(
    arguments: tuple[str, ...],
    found: list[Finding],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(doctor, "findings", lambda course: found)
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert (end.value.code or 0) == status
    assert "look here  Memory" in capsys.readouterr().out


def test_only_what_is_installed_stays_as_it_is() -> None:
    assert {one.what for one in findings() if one.passes} == {"Memory", "Disk"}


def test_doctor_and_start_page_say_one_figure_above_all_that_was_measured() -> None:
    measured = re.findall(r"MiB \| (\d+) MiB \|", (ROOT / "docs" / "classroom.md").read_text(encoding="utf-8"))
    assert measured
    assert max(map(int, measured)) * MEBIBYTE < CHAPTER_GB * GIGABYTE
    start_page = (ROOT / "solutions" / "00_start_here.py").read_text(encoding="utf-8")
    assert f"less than {CHAPTER_GB} GB of memory" in start_page
