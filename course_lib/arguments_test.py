"""Reading a learner's arrays: what passes, and the sentence for what does not."""

import numpy as np
import pytest
import torch

from course_lib.arguments import as_floating, as_mask, require_broadcastable, require_equal_axis, working


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_keep_their_precision_and_are_not_copied(dtype):
    array = np.ones(3, dtype=dtype)
    assert as_floating("x", array, 1) is array


def test_whole_numbers_lists_and_tensors_become_floats():
    for given in (np.array([1, 2]), [1, 2], torch.tensor([1.0, 2.0], dtype=torch.float64)):
        np.testing.assert_array_equal(as_floating("x", given, 1), np.array([1.0, 2.0]), strict=True)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (None, TypeError, "`x` must hold real numbers, got None"),
        ("three", TypeError, "`x` must hold real numbers, got dtype <U5"),
        (np.array([1j]), TypeError, "got dtype complex128"),
        (np.array([True]), TypeError, "got dtype bool"),
        (iter([1.0]), TypeError, "got dtype object"),
        (3.0, ValueError, r"`x` needs at least 1 axis, got shape \(\)"),
        ([[1.0], [1.0, 2.0]], ValueError, "`x` cannot be read as an array"),
        (torch.ones(2, requires_grad=True), ValueError, "`x` cannot be read as an array: .*detach"),
    ],
)
def test_what_is_no_array_of_numbers_is_named(given, error, words):
    with pytest.raises(error, match=words):
        as_floating("x", given, 1)


def test_half_precision_works_in_single_and_returns_to_half():
    (raised,), dtype = working(np.ones(2, dtype=np.float16))
    assert (raised.dtype, dtype) == (np.float32, np.float16)
    mixed, dtype = working(np.ones(2, dtype=np.float32), np.ones(2))
    assert {array.dtype for array in mixed} == {np.dtype(np.float64)}
    assert dtype == np.float64


def test_axes_of_different_length_are_named_with_both_arguments():
    require_equal_axis("key", np.ones((3, 4)), -1, "query", np.ones((2, 4)), -1)
    with pytest.raises(ValueError, match="`key` has 3 along axis -2 and `query` has 2 along axis -2"):
        require_equal_axis("key", np.ones((3, 4)), -2, "query", np.ones((2, 4)), -2)


def test_leading_axes_that_do_not_broadcast_are_named_with_their_shapes():
    require_broadcastable(query=np.ones((2, 1, 3, 4)), key=np.ones((5, 6, 4)))
    with pytest.raises(ValueError, match=r"`query` \(2, 3, 4\), `key` \(5, 6, 4\)"):
        require_broadcastable(query=np.ones((2, 3, 4)), key=np.ones((5, 6, 4)))


@pytest.mark.parametrize("shape", [(), (5,), (3, 5), (3, 1), (7, 1, 5), (2, 3, 5)])
def test_a_mask_that_broadcasts_is_taken(shape):
    leading = (2,) if shape != (7, 1, 5) else (7,)
    assert as_mask(np.ones(shape, dtype=bool), (*leading, 3, 5)).shape == shape


@pytest.mark.parametrize("shape", [(3,), (5, 3), (4, 5), (3, 3, 5)])
def test_a_mask_that_does_not_broadcast_is_named(shape):
    with pytest.raises(ValueError, match="`mask` has shape"):
        as_mask(np.ones(shape, dtype=bool), (2, 3, 5))


@pytest.mark.parametrize("mask", [np.zeros((3, 5)), np.ones((3, 5), dtype=int), None, "hide"])
def test_a_mask_that_is_not_boolean_is_refused(mask):
    with pytest.raises(TypeError, match=r"`mask` must be boolean \(True hides\)"):
        as_mask(mask, (2, 3, 5))
