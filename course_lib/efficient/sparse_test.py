"""Sparse patterns cell by cell, and receptive fields against gradients through real layers."""

import math

import jaxtyping
import pytest
import torch

from course_lib.dependence import dependence
from course_lib.efficient import sparse
from course_lib.mask_rules import rule_mask, sliding
from course_lib.tensor_attention import tensor_attention

SIZES = [(1, 1), (5, 2), (9, 3), (16, 4), (7, 10)]


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong shape reach the function's own checks: a notebook has no type checker."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def cell_by_cell(length, visible):
    return torch.tensor([[not visible(i, j) for j in range(length)] for i in range(length)])


@pytest.mark.parametrize(("length", "window"), SIZES)
def test_a_sliding_window_shows_the_token_and_its_neighbors(length, window):
    causal = cell_by_cell(length, lambda i, j: 0 <= i - j < window)
    both = cell_by_cell(length, lambda i, j: abs(i - j) < window)
    assert torch.equal(sparse.sliding_window_mask(length, window), causal)
    assert torch.equal(sparse.sliding_window_mask(length, window), rule_mask(sliding(window), length))
    assert torch.equal(sparse.sliding_window_mask(length, window, causal=False), both)


@pytest.mark.parametrize(("length", "stride"), SIZES)
def test_a_stride_shows_the_last_tokens_and_every_nth_before_them(length, stride):
    wanted = cell_by_cell(length, lambda i, j: j <= i and (i - j < stride or (i - j) % stride == 0))
    assert torch.equal(sparse.strided_mask(length, stride), wanted)


def test_global_tokens_see_all_and_are_seen_by_all():
    wanted = cell_by_cell(11, lambda i, j: abs(i - j) < 2 or i in (0, 6) or j in (0, 6))
    assert torch.equal(sparse.longformer_mask(11, 2, [0, 6]), wanted)


@pytest.mark.parametrize(("num_global", "num_random"), [(0, 3), (2, 3), (1, 0), (3, 40)])
def test_bigbird_adds_exactly_as_many_random_keys_as_asked(num_global, num_random):
    length, window = 24, 3
    mask = sparse.bigbird_mask(length, window, num_global, num_random, torch.Generator().manual_seed(0))
    fixed = sparse.longformer_mask(length, window, list(range(num_global)))
    assert not (mask & ~fixed).any()
    further = (fixed & ~mask).sum(-1)
    assert torch.equal(further, torch.minimum(torch.tensor(num_random), fixed.sum(-1)))


def test_bigbird_draws_every_free_key_equally_often():
    draws, length = 4000, 8
    generator = torch.Generator().manual_seed(1)
    seen = sum((~sparse.bigbird_mask(length, 1, 1, 2, generator)).float() for _ in range(draws)) / draws
    chance, deviations = 2 / 6, 5
    spread = math.sqrt(chance * (1 - chance) / draws)
    free = sparse.longformer_mask(length, 1, [0])
    assert (seen[free] - chance).abs().max() < deviations * spread


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_receptive_field_is_what_gradients_find(layers):
    generator = torch.Generator().manual_seed(layers)
    mask = torch.rand(9, 9, generator=generator) < 0.7
    x = torch.randn(9, 4, generator=generator, dtype=torch.float64)

    def stack(x):
        for _ in range(layers):
            x = tensor_attention(torch.ones_like(x), torch.ones_like(x), x, mask)[0]
        return x

    assert torch.equal(sparse.receptive_field(mask, layers), dependence(stack, x))


def test_many_layers_do_not_overflow():
    groups = torch.arange(16) % 2
    mask = groups[:, None] != groups
    assert torch.equal(sparse.receptive_field(mask, 200), ~mask)


def test_layers_until_everything_is_reached():
    window = sparse.sliding_window_mask(32, 5, causal=False)
    assert sparse.layers_to_full(window) == math.ceil(31 / 4)
    causal = sparse.sliding_window_mask(32, 5)
    assert sparse.layers_to_full(causal, torch.ones(32, 32).tril().bool()) == math.ceil(31 / 4)
    assert sparse.layers_to_full(sparse.longformer_mask(32, 1, [0])) == 2
    assert sparse.layers_to_full(torch.zeros(4, 4, dtype=torch.bool)) == 1
    assert sparse.layers_to_full(torch.eye(4).roll(1, 0) == 0) is None
    apart = torch.block_diag(torch.ones(3, 3), torch.ones(3, 3)) == 0
    assert sparse.layers_to_full(apart) is None


def test_keys_seen_are_counted_per_query():
    assert sparse.visible_per_row(sparse.sliding_window_mask(4, 2)) == (1 + 2 + 2 + 2) / 4


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sparse.sliding_window_mask(4, 0), "`window` must be at least 1, got 0"),
        (lambda: sparse.strided_mask(4, 0), "`stride` must be at least 1, got 0"),
        (lambda: sparse.longformer_mask(4, 1, [4]), r"`global_places` must lie in 0 … 3, got \[4\]"),
        (lambda: sparse.bigbird_mask(4, 1, 5, 0), "`num_global` is 5, but there are only 4 tokens"),
        (lambda: sparse.bigbird_mask(4, 1, 0, -1), "`num_random` must be at least 0, got -1"),
        (lambda: sparse.receptive_field(torch.zeros(2, 3, dtype=torch.bool), 1), "`mask` must be square"),
        (lambda: sparse.receptive_field(torch.zeros(2, 2, dtype=torch.bool), -1), "`layers` must be at least 0"),
    ],
    ids=["window", "stride", "place", "global", "random", "square", "layers"],
)
@pytest.mark.usefixtures("unchecked_annotations")
def test_what_makes_no_sense_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
