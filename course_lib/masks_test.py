"""Masks against double loops and the framework's attention; the softmax at its edges, forward and backward."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import math

import jaxtyping
import pytest
import torch
import torch.nn.functional as F

from course_lib.masks import (
    additive_mask,
    causal_mask,
    combine_masks,
    document_mask,
    masked_softmax,
    to_sdpa_mask,
)
from course_lib.tensor_attention import tensor_attention

TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float32: 1e-6, torch.float64: 1e-12}
EVERY_DTYPE = pytest.mark.parametrize("dtype", TOLERANCE)


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def normal(*shape, dtype=torch.float64, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize(("n_q", "n_k"), [(4, 4), (2, 5), (1, 6), (5, 3), (1, 1), (0, 4), (3, 0)])
def test_the_future_is_hidden_with_the_last_query_at_the_last_key(n_q, n_k):
    mask = causal_mask(n_q, n_k)
    assert mask.shape == (n_q, n_k)
    assert mask.dtype == torch.bool
    for i in range(n_q):
        for j in range(n_k):
            assert mask[i, j].item() == (j - n_k > i - n_q)


def test_as_many_keys_as_queries_is_the_default():
    assert torch.equal(causal_mask(5), causal_mask(5, 5))


def test_with_more_queries_than_keys_the_first_queries_see_nothing():
    assert causal_mask(5, 3)[:2].all()
    assert causal_mask(5, 3)[2:].logical_not().any(dim=1).all()


def test_a_key_is_hidden_by_the_future_or_by_padding():
    causal, padding = causal_mask(3), torch.tensor([[True, False, False], [False, False, True]])
    mask = combine_masks(causal, padding)
    assert mask.shape == (2, 1, 3, 3)
    for b in range(2):
        for i in range(3):
            for j in range(3):
                assert mask[b, 0, i, j].item() == (j > i or padding[b, j].item())


def test_packed_documents_are_causal_inside_and_strangers_outside():
    ids = [7, 7, 7, 2, 9, 9]
    mask = document_mask(torch.tensor(ids))
    for i, own in enumerate(ids):
        for j, other in enumerate(ids):
            assert mask[i, j].item() == (j > i or own != other)


def test_packed_documents_attend_as_each_does_alone():
    ids = torch.tensor([4, 4, 4, 0, 0, 1])
    query, key, value = normal(6, 5), normal(6, 5, seed=1), normal(6, 3, seed=2)
    packed, _ = tensor_attention(query, key, value, document_mask(ids))
    for document in (4, 0, 1):
        own = ids == document
        alone, _ = tensor_attention(query[own], key[own], value[own], causal_mask(int(own.sum())))
        torch.testing.assert_close(packed[own], alone)


@EVERY_DTYPE
def test_an_additive_mask_holds_nothing_but_zero_and_minus_infinity(dtype):
    mask = torch.tensor([[True, False, False], [False, True, True]])
    numbers = additive_mask(mask, dtype)
    assert numbers.dtype == dtype
    assert numbers.tolist() == [[-math.inf, 0, 0], [0, -math.inf, -math.inf]]


@pytest.mark.usefixtures("unchecked_annotations")
def test_numbers_that_cannot_be_a_mask_are_refused():
    with pytest.raises(TypeError, match=r"`mask` must be a boolean tensor \(True hides\), got dtype torch\.float32"):
        additive_mask(torch.zeros(2), torch.float32)
    with pytest.raises(TypeError, match=r"`dtype` must be a floating dtype.*got torch\.int64"):
        additive_mask(torch.zeros(2, dtype=torch.bool), torch.int64)
    with pytest.raises(TypeError, match=r"got dtype torch\.int64"):
        to_sdpa_mask(torch.ones(2, 2, dtype=torch.int64))
    with pytest.raises(TypeError, match=r"got dtype torch\.float32"):
        combine_masks(causal_mask(3), torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"`causal` \(3, 3\) and `padding` \(2, 4\) must have the same number"):
        combine_masks(causal_mask(3), torch.zeros(2, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="does not broadcast"):
        masked_softmax(torch.zeros(2, 3), torch.zeros(3, 2, dtype=torch.bool))


def partly_hidden(*shape):
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)) < 0.4
    mask[..., 0], mask[..., -1] = True, False
    return mask


@EVERY_DTYPE
def test_visible_keys_share_one_as_if_the_others_were_not_there(dtype):
    scores, mask = normal(2, 3, 4, 6, dtype=dtype), partly_hidden(4, 6)
    weights = masked_softmax(scores, mask)
    assert weights.dtype == dtype
    for row in range(4):
        visible = ~mask[row]
        wanted = torch.softmax(scores[..., row, visible].double(), dim=-1)
        torch.testing.assert_close(weights[..., row, visible].double(), wanted, rtol=0, atol=TOLERANCE[dtype])
        assert (weights[..., row, ~visible] == 0).all()


@EVERY_DTYPE
def test_a_row_that_sees_nothing_is_zero_in_value_and_gradient(dtype):
    scores = normal(3, 4, dtype=dtype).requires_grad_()
    mask = torch.zeros(3, 4, dtype=torch.bool)
    mask[1] = True
    weights = masked_softmax(scores, mask)
    (weights * normal(3, 4, dtype=dtype, seed=1)).sum().backward()
    assert (weights[1] == 0).all()
    assert (scores.grad[1] == 0).all()
    assert scores.grad.isfinite().all()
    assert (scores.grad[[0, 2]] != 0).all()


def test_a_hidden_score_of_any_size_has_no_influence():
    scores, mask = normal(2, 5), partly_hidden(2, 5)
    for content in (1e30, -1e30, math.inf, math.nan):
        changed = scores.masked_fill(mask, content)
        assert torch.equal(masked_softmax(changed, mask), masked_softmax(scores, mask))


def test_gradients_of_the_masked_softmax_pass_a_numerical_check():
    scores, mask = normal(3, 5).requires_grad_(), partly_hidden(3, 5)
    mask[2] = True
    assert torch.autograd.gradcheck(lambda s: masked_softmax(s, mask), (scores,))


def test_the_adapter_makes_the_frameworks_attention_agree_with_ours():
    query, key, value = normal(2, 3, 4, 5), normal(2, 3, 6, 5, seed=1), normal(2, 3, 6, 7, seed=2)
    for mask in (causal_mask(4, 6), partly_hidden(2, 1, 4, 6), partly_hidden(2, 1, 1, 6)):
        theirs = F.scaled_dot_product_attention(query, key, value, attn_mask=to_sdpa_mask(mask))
        torch.testing.assert_close(theirs, tensor_attention(query, key, value, mask)[0])
        wrong = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        assert (wrong - theirs).abs().max() > 0.1
