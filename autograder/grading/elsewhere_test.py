"""What travels to a worker is enough to grade there, and a worker that would grade differently refuses."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest

from autograder.build import answered_notebook
from autograder.errors import CourseError
from autograder.grading import elsewhere
from autograder.grading.elsewhere import Order, grade_there, packed, unpacked
from autograder.grading.files import source_text
from autograder.grading.keys import environment
from autograder.grading.kit import chapter_kit
from autograder.grading.limits import Limits
from autograder.grading.pool import KernelPool
from autograder.grading.sandbox import AUTO
from autograder.grading.stock import load_configuration
from autograder.testing.checked_course import CHAPTER, FIRST, RIGHT, make_checked_course


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Return a course with two checked exercises."""
    return make_checked_course(tmp_path / "course")


@pytest.fixture
def order(course: Path) -> Order:
    """Return what a run would send."""
    source = nbformat.reads(source_text(course, CHAPTER, course), as_version=nbformat.NO_CONVERT)
    kit = chapter_kit(CHAPTER, source, load_configuration(course))
    return Order(kit, b"\x00secret", 8.0, Limits(seconds=60), AUTO, environment())


def test_an_order_survives_the_way(order: Order) -> None:
    assert unpacked(packed(order)) == order


def test_a_worker_with_another_environment_refuses_and_says_what_differs(order: Order) -> None:
    other = Order(**{**vars(order), "environment": {**environment(), "torch": "0.1", "autograder": "old"}})
    with pytest.raises(CourseError, match=r"differs from here in torch \(.*, not 0\.1\), autograder \(.*, not old\)"):
        grade_there(packed(other), "ada", b"{}", {})


@pytest.mark.slow
@pytest.mark.parametrize("folder", [None, "that the warm process removed at its end"])
def test_a_worker_needs_nothing_of_the_course_and_replaces_a_warm_process_that_ended(
    folder: str | None, course: Path, order: Order, monkeypatch: pytest.MonkeyPatch, warm_pool: KernelPool
) -> None:
    data = json.dumps(answered_notebook(course, CHAPTER, RIGHT)).encode()
    shutil.rmtree(course)
    process: Any = SimpleNamespace(folder=str(course / folder), close=lambda: None) if folder else None
    ended = KernelPool(process=process)
    monkeypatch.setattr(elsewhere, "_pools", {AUTO: ended})
    monkeypatch.setattr("autograder.grading.pool.KernelPool", lambda sandbox: warm_pool)
    served = grade_there(packed(order), "ada", data, {})
    assert {name: exercise.points for name, exercise in served.graded.result.exercises.items()}[FIRST] == 3.0
    assert (served.sandbox, served.warning) == (warm_pool.kind, warm_pool.warning)
    assert elsewhere._pools == {AUTO: warm_pool}
    assert elsewhere.warm_pool(AUTO) is warm_pool
