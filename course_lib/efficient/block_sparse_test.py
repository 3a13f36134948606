"""Block-sparse attention equals dense attention under the spread mask, and computes visible blocks alone."""

import jaxtyping
import pytest
import torch

from course_lib.efficient import block_sparse
from course_lib.efficient.sparse import sliding_window_mask
from course_lib.memory import allocated_shapes
from course_lib.tensor_attention import tensor_attention

EXACT = 1e-12
SINGLE = 1e-5


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong shape reach the function's own checks: a notebook has no type checker."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def drawn(length, dtype=torch.float64):
    generator = torch.Generator().manual_seed(length)
    return tuple(torch.randn(2, 3, length, width, generator=generator, dtype=dtype) for width in (4, 4, 5))


def layout(blocks):
    """Draw a layout that is neither symmetric nor diagonal; its second row hides everything."""
    mask = torch.rand(blocks, blocks, generator=torch.Generator().manual_seed(blocks)) < 0.5
    mask[1] = True
    return mask


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, EXACT), (torch.float32, SINGLE)])
@pytest.mark.parametrize(("blocks", "block_size"), [(3, 4), (5, 2), (4, 1)])
def test_blocks_equal_dense_attention_under_the_spread_mask(blocks, block_size, dtype, tolerance):
    mask = layout(blocks)
    ours = [tensor.requires_grad_() for tensor in drawn(blocks * block_size, dtype)]
    theirs = [tensor.detach().clone().requires_grad_() for tensor in ours]
    found = block_sparse.block_sparse_attention(*ours, mask, block_size)
    wanted, _ = tensor_attention(*theirs, block_sparse.expand_block_mask(mask, block_size))
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)
    found.cos().sum().backward()
    wanted.cos().sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=tolerance, atol=tolerance)


def test_scores_exist_for_visible_blocks_alone():
    mask = ~torch.eye(8, dtype=torch.bool)
    shapes = allocated_shapes(block_sparse.block_sparse_attention, *drawn(64), mask, 8)
    assert not [shape for shape in shapes if shape[-2:] == (64, 64)]
    assert (2, 3, 8, 8) in shapes


def test_a_cover_skips_exactly_the_blocks_that_are_hidden_whole():
    mask = sliding_window_mask(12, 3)
    cover = block_sparse.block_cover(mask, 4)
    wanted = [[bool(mask[4 * i : 4 * i + 4, 4 * j : 4 * j + 4].all()) for j in range(3)] for i in range(3)]
    assert cover.tolist() == wanted
    assert torch.equal(block_sparse.block_cover(block_sparse.expand_block_mask(layout(3), 4), 4), layout(3))


@pytest.mark.usefixtures("unchecked_annotations")
def test_what_does_not_fit_is_refused():
    query, key, value = drawn(10)
    with pytest.raises(ValueError, match="`block_size` must divide the number of tokens, got 4 for 10"):
        block_sparse.block_sparse_attention(query, key, value, layout(3), 4)
    with pytest.raises(ValueError, match=r"`mask` has shape \(3, 3\)"):
        block_sparse.block_sparse_attention(query, key, value, layout(3), 2)
    with pytest.raises(TypeError, match="must be a boolean tensor"):
        block_sparse.block_sparse_attention(query, key, value, layout(5).float(), 2)
