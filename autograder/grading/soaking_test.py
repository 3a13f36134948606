"""The grader's memory does not grow with the class, and the measurement would notice if it did."""

from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.grading.engine import ClassRun
from autograder.grading.pool import KernelPool
from autograder.testing.soaking import KILOBYTE, OUTPUT_BYTES, make_soaked_class, soak

pytestmark = pytest.mark.slow
STUDENTS = 40
MOST_GROWTH = 64 * KILOBYTE  # for each submission: its line in the results takes some, its notebook none
FEW = 16


def test_memory_does_not_grow_with_the_class(
    tmp_path: Path, warm_pool: KernelPool, record_property: Callable[[str, object], None]
) -> None:
    soaked = soak(make_soaked_class(tmp_path / "course", STUDENTS), warm_pool)
    assert len(soaked.memory) == soaked.students == STUDENTS
    assert soaked.growth < MOST_GROWTH < OUTPUT_BYTES
    record_property("measured", f"memory of the grader: {soaked.growth / KILOBYTE:.1f} kB more with each submission")


def test_a_grader_that_keeps_what_was_handed_in_is_noticed(
    tmp_path: Path, warm_pool: KernelPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, real = [], ClassRun.keep

    def planted(run, submission, outcome):
        kept.append(outcome)
        return real(run, submission, outcome)

    monkeypatch.setattr(ClassRun, "keep", planted)
    assert soak(make_soaked_class(tmp_path / "course", FEW), warm_pool).growth > MOST_GROWTH
