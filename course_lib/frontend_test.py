"""Who is there to see: a notebook's reader, or nobody."""

from types import SimpleNamespace

import pytest

from course_lib import frontend

KERNEL = SimpleNamespace(kernel=object())


@pytest.mark.parametrize(
    ("shell", "grading", "expected"),
    [
        (KERNEL, None, True),
        (KERNEL, "", True),
        (KERNEL, "0", True),
        (KERNEL, "validate", False),
        (SimpleNamespace(), None, False),
        (None, None, False),
    ],
)
def test_only_an_ungraded_kernel_is_interactive(monkeypatch, shell, grading, expected):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    if grading is not None:
        monkeypatch.setenv("NBGRADER_EXECUTION", grading)
    monkeypatch.setattr(frontend, "get_ipython", lambda: shell)
    assert frontend.interactive() is expected
