"""Comparison: one sentence on the first difference, none where there is none."""

import numpy as np
import pytest
import torch

from autograder.compare import difference, same
from autograder.values import Opaque, Raised

WANTED = np.array([[0.25, 0.75], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("expected", "actual", "sentence"),
    [
        (WANTED, None, "it is None: did you forget `return`?"),
        (
            WANTED,
            WANTED.tolist(),
            "expected it to be a NumPy array, but it is a list of 2; make one with np.array(…)",
        ),
        (WANTED, torch.tensor(WANTED), "expected it to be a NumPy array, but it is a tensor"),
        (torch.tensor(WANTED), WANTED, "expected it to be a tensor, but it is a NumPy array"),
        (WANTED, WANTED[0], "expected it to have the shape (2, 2), but it has (2,)"),
        (WANTED, WANTED.astype("float32"), "expected it to have the dtype float64, but it has float32"),
        (
            WANTED,
            WANTED * [1, np.nan],
            "it[0, 1] is nan, but it should be 0.75; 2 of 4 numbers are not finite",
        ),
        (WANTED, WANTED + np.diag([0, 1]), "it[1, 1] is 1.5, but it should be 0.5; 1 of 4 numbers is wrong"),
        (WANTED, Opaque("generator"), "but it is an object of type generator"),
        (Opaque("method"), 3, "expected an object of type method, but it is an int (3)"),
        (WANTED, np.float64(1), "but it is the NumPy scalar 1.0"),
        ((WANTED, 1), WANTED, "expected it to be a tuple of 2, but it is a NumPy array"),
        ((WANTED, 1), (WANTED,), "expected it to have 2 entries, but it has 1"),
        ((WANTED, 1), (WANTED, 2), "expected it[1] to be 1, but it is 2"),
        (2.0, "two", "expected it to be a number, but it is the text ('two')"),
        (2, 2.0, "expected it to be an int, but it is the float 2.0"),
        (2.0, 2.1, "expected it to be 2.0, but it is 2.1"),
        (2.0, float("nan"), "expected it to be 2.0, but it is nan"),
        (True, 1, "expected it to be True, but it is 1"),
        ("left", "right", "expected it to be 'left', but it is 'right'"),
        ({"a": 1}, {"b": 1}, "expected it to be a dict with the keys a"),
        ({"a": 1}, {"a": 3}, "expected it['a'] to be 1, but it is 3"),
        (Raised("ValueError", ""), WANTED, "expected a ValueError here, but it is a NumPy array"),
        (
            Raised("ValueError", ""),
            Raised("TypeError", "no"),
            "expected a ValueError here, but your code raised TypeError: no",
        ),
        (WANTED, Raised("KeyError", "'x'", "line 3"), "your code raised KeyError: 'x' (at line 3)"),
        (WANTED, Raised("NotImplementedError", ""), "this exercise is not answered yet"),
        (np.array([True, False]), np.array([True, True]), "it[1] is True, but it should be False"),
        (np.array([1, 2]), np.array([1.0, 2.0]), "expected it to have the dtype int64, but it has float64"),
    ],
)
def test_each_kind_of_difference_has_its_sentence(expected, actual, sentence: str) -> None:
    found = difference(expected, actual, "it")
    assert found is not None
    assert sentence in found


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (WANTED, WANTED * (1 + 1e-10)),
        ((WANTED, 1), [WANTED, 1]),
        (2.0, np.float64(2)),
        (2.0, 2),
        (2.0, torch.tensor(2.0)),
        (2, np.int64(2)),
        (True, np.bool_(True)),
        (float("inf"), float("inf")),
        (np.array([np.nan, np.inf]), np.array([np.nan, np.inf])),
        (np.array([1, 2]), np.array([1, 2], dtype=np.int32)),
        (np.zeros(2), np.zeros(2)),
        (torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.bfloat16)),
        (Raised("LookupError", "a"), Raised("KeyError", "b", None, ("KeyError", "LookupError"))),
    ],
)
def test_what_agrees_has_no_sentence(expected, actual) -> None:
    assert difference(expected, actual, "it") is None


def test_small_quantities_are_compared_relative_to_their_size() -> None:
    tiny = np.array([1e-9, 2e-9])
    assert difference(tiny, tiny * 1.01, "it") is not None


def test_names_of_parts_are_used() -> None:
    found = difference((WANTED, WANTED), (WANTED, WANTED + 1), "it", parts=("output", "weights"))
    assert found is not None
    assert found.startswith("weights[0, 0] is 1.25")


def test_exceptions_are_the_same_only_with_the_same_message() -> None:
    assert same(Raised("ValueError", "a"), Raised("ValueError", "a", "line 1"))
    assert not same(Raised("ValueError", "a"), Raised("ValueError", "b"))
    assert not same(Raised("ValueError", "a"), Raised("TypeError", "a"))


def test_two_refusals_that_are_asked_for_agree_whatever_their_words() -> None:
    asked = Raised("ValueError", "the reference's words", bases=("ValueError", "Exception"))
    special = Raised("NoRoom", "b", bases=("NoRoom", "ValueError", "Exception"))
    assert same(Raised("ValueError", "a"), Raised("ValueError", "b"), asked=asked)
    assert same(Raised("ValueError", "a"), special, asked=asked)
    assert not same(Raised("TypeError", "a"), Raised("TypeError", "b"), asked=asked)
    assert not same(Raised("ValueError", "a"), WANTED, asked=asked)


def test_a_belief_that_raises_without_a_word_stands_for_all_words() -> None:
    assert same(Raised("AssertionError", ""), Raised("AssertionError", "the temperature should be positive"))
    assert not same(Raised("AssertionError", ""), Raised("ValueError", ""))
    assert not same(Raised("AssertionError", "words"), Raised("AssertionError", ""))


def test_a_tolerance_may_be_given_by_dtype_or_for_all() -> None:
    near = WANTED * 1.001
    assert difference(WANTED, near, "it", 1e-2) is None
    assert difference(WANTED, near, "it", {"float64": 1e-2}) is None
    assert difference(WANTED, near, "it", {"float32": 1e-2}) is not None
