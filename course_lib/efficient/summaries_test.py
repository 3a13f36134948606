"""Attention to a summarized past, against loops and against causal attention."""

import jaxtyping
import pytest
import torch
import torch.nn.functional as F

from course_lib.dependence import dependence
from course_lib.efficient.summaries import compressive_attention, compressive_mask
from course_lib.masks import causal_mask
from course_lib.tensor_attention import tensor_attention

TOLERANCE = 1e-12


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def by_loops(query, key, value, recent, rate):
    """Collect, query by query, what it may see, and let the framework attend."""
    rows = []
    for place in range(len(query)):
        keys, values, start = [], [], 0
        while start <= place:
            whole_group_is_old = start + rate - 1 <= place - recent
            stop = start + rate if whole_group_is_old else start + 1
            keys.append(key[start:stop].mean(0))
            values.append(value[start:stop].mean(0))
            start = stop
        rows.append(F.scaled_dot_product_attention(query[place : place + 1], torch.stack(keys), torch.stack(values)))
    return torch.cat(rows)


@pytest.mark.parametrize(("recent", "rate"), [(1, 2), (3, 4), (4, 3), (2, 5)])
def test_old_tokens_are_seen_as_means_and_recent_ones_alone(recent, rate):
    query, key, value = draw(13, 4), draw(13, 4, seed=1), draw(13, 5)
    got = compressive_attention(query, key, value, recent, rate)
    torch.testing.assert_close(got, by_loops(query, key, value, recent, rate), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(("recent", "rate"), [(13, 4), (20, 3), (2, 1)])
def test_nothing_old_or_groups_of_one_are_causal_attention(recent, rate):
    query, key, value = draw(2, 3, 13, 4), draw(2, 3, 13, 4, seed=1), draw(2, 3, 13, 5)
    got = compressive_attention(query, key, value, recent, rate)
    torch.testing.assert_close(got, tensor_attention(query, key, value, causal_mask(13))[0], rtol=0, atol=TOLERANCE)


def test_every_output_depends_on_all_earlier_tokens_and_on_no_later_one():
    query, key = draw(11, 4), draw(11, 4, seed=1)
    found = dependence(lambda value: compressive_attention(query, key, value, 2, 3), draw(11, 2))
    assert torch.equal(found, torch.ones(11, 11).tril().bool())


def test_a_query_sees_about_its_recent_tokens_and_one_mean_per_group():
    seen = (~compressive_mask(1024, 64, 16)).sum(-1)
    assert seen[-1] == 64 + (1024 - 64) // 16
    assert seen.max() < 64 + 16 + 1024 // 16


def test_bad_numbers_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    x = draw(5, 4)
    with pytest.raises(ValueError, match="`rate` must be at least 1"):
        compressive_attention(x, x, x, 2, 0)
    with pytest.raises(TypeError, match="`recent`"):
        compressive_attention(x, x, x, 2.5, 2)
