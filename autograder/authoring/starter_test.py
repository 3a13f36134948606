"""A starter takes the place of nbgrader's stub."""

import pytest

from autograder.authoring.starter import insert_starter

STUB = "# Your code.\nraise NotImplementedError()"


def test_starter_replaces_the_stub_at_its_indent() -> None:
    cell = """\
def f(x):
    # Your code.
    raise NotImplementedError()
    # BEGIN STARTER
    # if x:
    #     return 1
    #
    # return "# 2"
    # END STARTER

y = 1"""
    assert (
        insert_starter(cell, STUB)
        == """\
def f(x):
    if x:
        return 1

    return "# 2"

y = 1"""
    )


def test_cell_without_a_starter_keeps_its_stub() -> None:
    assert insert_starter(STUB, STUB) == STUB


def test_starter_without_a_stub_before_it_is_refused() -> None:
    with pytest.raises(RuntimeError, match="END SOLUTION"):
        insert_starter("x = 1\n# BEGIN STARTER\n# y\n# END STARTER", STUB)
