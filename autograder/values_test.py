"""Plain values."""

from typing import NamedTuple

import numpy as np
import pytest
import torch

from autograder.values import MAX_TEXT, Opaque, Raised, describe, plain, shortened


class Sly(np.ndarray):
    """An array that claims to equal everything."""

    def __eq__(self, other):
        return True

    __hash__ = None


class SlyFloat(float):
    """A number that claims to equal everything."""

    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        (np.ones(2).view(Sly), "Sly"),
        (SlyFloat(1), "SlyFloat"),
        (iter([1]), "list_iterator"),
        (print, "builtin_function_or_method"),
        (np.array([None]), "array of object"),
        ({1, 2}, "set"),
        pytest.param(10**5000, "int of 16610 bits", id="a huge int"),
    ],
)
def test_what_is_not_plain_becomes_opaque(value, type_name: str) -> None:
    assert plain(value) == Opaque(type_name)


def test_plain_values_are_copies() -> None:
    array, tensor = np.ones(2), torch.ones(2)
    copied = plain((array, [tensor]))
    array[0], tensor[0] = 5, 5
    assert copied[0][0] == 1
    assert copied[1][0][0] == 1


def test_parameters_become_tensors_without_gradient() -> None:
    found = plain(torch.nn.Parameter(torch.ones(2)))
    assert type(found) is torch.Tensor
    assert not found.requires_grad


def test_a_list_without_end_is_cut() -> None:
    endless: list = []
    endless.append(endless)
    assert "Opaque" in repr(plain(endless))
    assert plain([0] * 100_000) == Opaque("list of 100000 items")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None"),
        (np.ones((2, 3), np.float32), "a NumPy array of shape (2, 3) and dtype float32"),
        (torch.ones(2), "a tensor of shape (2,) and dtype float32"),
        (np.float64(2), "the NumPy scalar 2.0 (dtype float64)"),
        ([1, 2], "a list of 2"),
        (3, "an int (3)"),
        (2.5, "a float (2.5)"),
        (True, "a boolean (True)"),
        ("no", "the text ('no')"),
        (Raised("ValueError", "bad"), "ValueError: bad"),
        (Opaque("set"), "an object of type set"),
        ({"b": 1, "a": 2}, "a dict with the keys a, b"),
    ],
)
def test_values_are_described_in_words(value, words: str) -> None:
    assert describe(value) == words


class Pair(NamedTuple):
    """A named tuple that says nothing true of itself."""

    output: np.ndarray
    weights: np.ndarray

    def __len__(self):
        return 0


def test_a_named_tuple_is_read_as_a_tuple() -> None:
    found = plain(Pair(np.ones(1), np.zeros(1)))
    assert type(found) is tuple
    assert len(found) == 2


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.ones(2).to_sparse(), "sparse_coo tensor"),
        (torch.ones(2, device="meta"), "meta tensor"),
    ],
)
def test_a_tensor_whose_numbers_cannot_be_read_is_named(tensor: torch.Tensor, words: str) -> None:
    assert plain(tensor) == Opaque(words)


def test_a_long_text_is_put_on_one_line_and_cut() -> None:
    assert shortened("a\nb") == "a b"
    assert len(shortened("x" * 10**6)) == MAX_TEXT + 1
    assert len(describe("x" * 10**6)) < 2 * MAX_TEXT
