"""Similarity against NumPy's cosine, contributions against the output, and silence against zeroed weights."""

import numpy as np
import pytest
import torch

from course_lib.head_analysis import head_contributions, head_similarity, uniform_weights, without_heads
from course_lib.multi_head import MultiHeadAttention, split_heads
from course_lib.tensor_attention import tensor_attention

BATCH, HEADS, D_MODEL, LENGTH = 2, 3, 12, 6
FALSE_ALARM = 0.7  # cosine that unrelated soft maps reach anyway


def layer(seed=0):
    torch.manual_seed(seed)
    return MultiHeadAttention(D_MODEL, HEADS).double()


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_similarity_is_the_cosine_of_each_pair_averaged_over_the_batch():
    weights = draw(BATCH, HEADS, 4, 5).softmax(-1)
    got = head_similarity(weights)
    for i in range(HEADS):
        for j in range(HEADS):
            cosines = [
                np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b)
                for a, b in ((row[i].flatten().numpy(), row[j].flatten().numpy()) for row in weights)
            ]
            assert got[i, j].item() == pytest.approx(np.mean(cosines))


def test_a_copied_head_is_found_and_the_diagonal_is_one():
    weights = draw(BATCH, HEADS, 4, 5).softmax(-1)
    weights[:, 2] = weights[:, 0]
    similarity = head_similarity(weights)
    torch.testing.assert_close(similarity.diagonal(), torch.ones(HEADS, dtype=torch.float64))
    assert similarity[0, 2].item() == pytest.approx(1)
    assert similarity[0, 1] < 1


def test_unrelated_heads_look_alike_until_the_uniform_map_is_taken_away():
    weights = draw(200, HEADS, LENGTH, LENGTH).mul(0.5).softmax(-1)
    others = ~torch.eye(HEADS, dtype=torch.bool)
    baseline = uniform_weights(torch.zeros(LENGTH, LENGTH, dtype=torch.bool)).double()
    assert (head_similarity(weights)[others] > FALSE_ALARM).all()
    assert (head_similarity(weights - baseline)[others].abs() < 0.1).all()


def test_uniform_weights_share_among_visible_keys_only():
    hidden = torch.ones(3, 3, dtype=torch.bool).triu(1)
    hidden[1] = True
    wanted = torch.tensor([[1, 0, 0], [0, 0, 0], [1 / 3, 1 / 3, 1 / 3]])
    torch.testing.assert_close(uniform_weights(hidden), wanted)


def test_contributions_and_the_bias_sum_to_the_output():
    attention, x = layer(), draw(BATCH, LENGTH, D_MODEL)
    heads = (split_heads(linear(x), HEADS) for linear in (attention.w_q, attention.w_k, attention.w_v))
    found, _ = tensor_attention(*heads)
    contributions = head_contributions(attention, found)
    assert contributions.shape == (BATCH, HEADS, LENGTH, D_MODEL)
    torch.testing.assert_close(contributions.sum(1) + attention.w_o.bias, attention(x, x, x)[0])


def test_a_silent_head_adds_nothing_and_speaks_again_afterwards():
    attention, x = layer(), draw(BATCH, LENGTH, D_MODEL)
    before, weights = attention(x, x, x)
    with without_heads(attention, [1]):
        silenced, same_weights = attention(x, x, x)
    cut = layer()
    with torch.no_grad():
        cut.w_o.weight[:, 4:8] = 0
    torch.testing.assert_close(silenced, cut(x, x, x)[0])
    assert torch.equal(same_weights, weights)
    assert torch.equal(attention(x, x, x)[0], before)


def test_a_head_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"`heads` must lie in 0 … 2, got \[3\]"), without_heads(layer(), [3]):
        pass
