"""Windowed attention equals the masked form, forward and backward, and never holds a square table."""

import jaxtyping
import pytest
import torch
import torch.nn.functional as F

from course_lib.efficient.local import local_attention, window_pairs
from course_lib.efficient.sparse import sliding_window_mask
from course_lib.memory import allocated_shapes, peak_bytes

EXACT = 1e-12  # float64
SINGLE = 1e-5  # float32
lengths_and_windows = pytest.mark.parametrize(("length", "window"), [(1, 1), (7, 3), (9, 3), (10, 1), (5, 8), (12, 12)])


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong shape reach the function's own checks: a notebook has no type checker."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def drawn(length, dtype=torch.float64, leading=(2, 3)):
    generator = torch.Generator().manual_seed(length)
    return tuple(torch.randn(*leading, length, width, generator=generator, dtype=dtype) for width in (4, 4, 5))


def masked(query, key, value, window):
    visible = ~sliding_window_mask(query.shape[-2], window)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=visible)


@lengths_and_windows
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, EXACT), (torch.float32, SINGLE)])
def test_a_window_equals_the_frameworks_masked_attention(length, window, dtype, tolerance):
    tensors = drawn(length, dtype)
    found = local_attention(*tensors, window)
    assert found.dtype == dtype
    torch.testing.assert_close(found, masked(*tensors, window), rtol=tolerance, atol=tolerance)


@lengths_and_windows
def test_gradients_equal_those_of_the_masked_form(length, window):
    ours = [tensor.requires_grad_() for tensor in drawn(length)]
    theirs = [tensor.detach().clone().requires_grad_() for tensor in ours]
    local_attention(*ours, window).cos().sum().backward()
    masked(*theirs, window).cos().sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=EXACT, atol=EXACT)


def test_a_token_beyond_the_window_has_no_influence():
    query, key, value = drawn(20)
    before = local_attention(query, key, value, 4)
    key[..., 6, :], value[..., 6, :] = 1e6, 1e6
    moved = (local_attention(query, key, value, 4) != before).any(-1).any(0).any(0)
    assert moved.nonzero().squeeze(-1).tolist() == [6, 7, 8, 9]


def test_no_square_table_is_allocated_and_memory_grows_with_n_alone():
    shapes = allocated_shapes(local_attention, *drawn(96), 8)
    assert not [shape for shape in shapes if shape[-2:] == (96, 96)]
    short, long = (peak_bytes(local_attention, *drawn(length), 8).bytes for length in (512, 1024))
    assert long < 2.2 * short


def test_pairs_are_counted_as_the_mask_shows_them():
    for length, window in ((1, 1), (7, 3), (5, 8), (30, 30)):
        assert window_pairs(length, window) == (~sliding_window_mask(length, window)).sum()


@pytest.mark.usefixtures("unchecked_annotations")
def test_what_does_not_fit_is_refused():
    query, key, value = drawn(6)
    with pytest.raises(ValueError, match=r"`window` must be at least 1.*got 0"):
        local_attention(query, key, value, 0)
    with pytest.raises(ValueError, match=r"same number of tokens, got \[6, 5, 6\]"):
        local_attention(query, key[..., :5, :], value, 2)
    with pytest.raises(ValueError, match="`query` has 4 features and `key` 3"):
        local_attention(query, key[..., :3], value, 2)
