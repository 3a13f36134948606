"""Linformer against the framework's attention over projected keys, and at its edges."""

import jaxtyping
import pytest
import torch
import torch.nn.functional as F

from course_lib.efficient.linformer import linformer_attention, mean_pooling
from course_lib.memory import allocated_shapes
from course_lib.tensor_attention import tensor_attention

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def draw(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def inputs(dtype=torch.float64):
    tensors = draw(2, 3, 7, 4), draw(2, 3, 9, 4), draw(2, 3, 9, 5), draw(6, 9), draw(6, 9, seed=1)
    return [tensor.to(dtype) for tensor in tensors]


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_it_is_the_frameworks_attention_over_mixtures(dtype):
    query, key, value, e, f = inputs(dtype)
    mixed = torch.einsum("kn,bhnd->bhkd", e, key), torch.einsum("kn,bhnd->bhkd", f, value)
    wanted = F.scaled_dot_product_attention(query, *mixed)
    got = linformer_attention(query, key, value, e, f)
    torch.testing.assert_close(got, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_with_as_many_mixtures_as_tokens_it_can_be_exact():
    query, key, value, *_ = inputs()
    identity = torch.eye(9, dtype=torch.float64)
    got = linformer_attention(query, key, value, identity, identity)
    torch.testing.assert_close(got, tensor_attention(query, key, value)[0])


def test_the_table_has_one_column_for_each_mixture():
    shapes = allocated_shapes(linformer_attention, *inputs(), views=True)
    endings = {shape[-2:] for shape in shapes}
    assert (7, 6) in endings
    assert (7, 9) not in endings


def test_gradients_reach_all_five_inputs():
    assert torch.autograd.gradcheck(linformer_attention, [tensor.requires_grad_() for tensor in inputs()])


def test_another_length_or_rank_is_refused(unchecked_annotations):
    query, key, value, e, f = inputs()
    with pytest.raises(ValueError, match=r"`e` \(6, 9\) mixes 9 tokens, and there are 8 keys"):
        linformer_attention(query, key[..., :8, :], value[..., :8, :], e, f)
    with pytest.raises(ValueError, match="`e` makes 6 keys and `f` makes 5 values"):
        linformer_attention(query, key, value, e, f[:5])


@pytest.mark.parametrize(("rank", "length"), [(1, 5), (3, 7), (4, 4)])
def test_pooling_averages_every_token_once_in_order(rank, length):
    pooling = mean_pooling(rank, length, torch.float64)
    assert torch.equal((pooling > 0).sum(0), torch.ones(length, dtype=torch.int64))
    torch.testing.assert_close(pooling.sum(-1), torch.ones(rank, dtype=torch.float64))
    assert torch.equal(pooling.argmax(0), pooling.argmax(0).sort().values)


def test_more_groups_than_tokens_are_refused():
    with pytest.raises(ValueError, match="`rank` must be from 1 to the length 3, got 4"):
        mean_pooling(4, 3)
