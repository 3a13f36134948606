"""Shards give what the whole layer gives; a ring that is played out costs what its formula says."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from course_lib.training.parallel import (
    all_reduce,
    column_parallel,
    expert_dispatch,
    ring_all_reduce_bytes,
    ring_all_reduce_seconds,
    row_parallel,
)

DIGITS = {torch.float32: 1e-5, torch.float64: 1e-12}


def play_ring(parts, latency, bandwidth):
    """Play an all-reduce around a ring: in every round each worker sends one chunk to the next one."""
    workers = len(parts)
    chunks = [[chunk.clone() for chunk in part.chunk(workers)] for part in parts]
    sent, seconds = [0] * workers, 0.0
    for turn in range(2 * (workers - 1)):
        adding = turn < workers - 1
        moving = [(worker - turn) % workers for worker in range(workers)]
        letters = [chunks[worker][moving[worker]].clone() for worker in range(workers)]
        for worker, letter in enumerate(letters):
            target = chunks[(worker + 1) % workers]
            target[moving[worker]] = target[moving[worker]] + letter if adding else letter
            sent[worker] += letter.nbytes
        seconds += latency + max(letter.nbytes for letter in letters) / bandwidth
    return [torch.cat(own) for own in chunks], sent, seconds


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_a_ring_that_is_played_out_sums_and_costs_what_the_formula_says(workers):
    parts = [torch.randn(workers * 12, dtype=torch.float64) for _ in range(workers)]
    results, sent, seconds = play_ring(parts, 0.5, 100.0)
    for result in results:
        torch.testing.assert_close(result, sum(parts))
    assert sent == [ring_all_reduce_bytes(parts[0].nbytes, workers)] * workers
    assert seconds == pytest.approx(ring_all_reduce_seconds(parts[0].nbytes, workers, 0.5, 100.0))


@pytest.mark.parametrize("dtype", DIGITS)
def test_columns_then_rows_are_the_whole_network_with_one_sum(dtype):
    torch.manual_seed(0)
    first, second = nn.Linear(6, 12, bias=False, dtype=dtype), nn.Linear(12, 5, bias=False, dtype=dtype)
    x = torch.randn(2, 7, 6, dtype=dtype, requires_grad=True)
    calls = []

    def counted(parts):
        calls.append(len(parts))
        return all_reduce(parts)

    hidden = [torch.relu(part) for part in column_parallel(x, first.weight.T, 3)]
    output = row_parallel(hidden, second.weight.T, counted)
    whole = second(torch.relu(first(x)))
    torch.testing.assert_close(output, whole, rtol=DIGITS[dtype], atol=DIGITS[dtype])
    assert calls == [3]
    ours, theirs = (torch.autograd.grad(result.square().sum(), [x, first.weight]) for result in (output, whole))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=10 * DIGITS[dtype], atol=10 * DIGITS[dtype])


def test_rows_first_is_another_function():
    torch.manual_seed(0)
    x, weight = torch.randn(4, 6), torch.randn(6, 8)
    partial = [torch.relu(part @ rows) for part, rows in zip(x.chunk(2, -1), weight.chunk(2), strict=True)]
    assert (sum(partial) - torch.relu(x @ weight)).abs().max() > 0.1


@pytest.mark.parametrize("shards", [0, 4])
def test_columns_that_cannot_be_shared_are_refused(shards):
    with pytest.raises(ValueError, match="`shards` must divide the 6 columns"):
        column_parallel(torch.ones(2, 3), torch.ones(3, 6), shards)


def test_features_that_are_not_the_rows_are_refused():
    with pytest.raises(ValueError, match="`xs` has 4 features in all; `weight` has 5 rows"):
        row_parallel([torch.ones(1, 2), torch.ones(1, 2)], torch.ones(5, 3), all_reduce)


def test_an_all_reduce_wants_one_tensor_per_device():
    with pytest.raises(ValueError, match="one shape"):
        all_reduce([torch.ones(2), torch.ones(3)])
    with pytest.raises(TypeError, match="list"):
        all_reduce(torch.ones(2))
    with pytest.raises(ValueError, match="none"):
        all_reduce([])


def test_a_worker_alone_sends_nothing():
    assert ring_all_reduce_seconds(1e9, 1, 1.0, 1.0) == 0
    with pytest.raises(ValueError, match="workers"):
        ring_all_reduce_seconds(1.0, 0, 1.0, 1.0)
    with pytest.raises(ValueError, match="bandwidth"):
        ring_all_reduce_seconds(1.0, 2, 1.0, 0.0)
    with pytest.raises(ValueError, match="workers"):
        ring_all_reduce_bytes(1.0, 0)


@given(st.lists(st.integers(0, 4), max_size=20))
def test_groups_hold_the_tokens_of_their_experts_and_can_be_undone(choices):
    index = torch.tensor(choices, dtype=torch.int64)
    x = torch.arange(2.0 * len(choices)).view(-1, 2)
    grouped, restore = expert_dispatch(x, index, 5)
    assert torch.equal(grouped[restore], x)
    one_by_one = [x[i] for expert in range(5) for i in range(len(choices)) if choices[i] == expert]
    assert torch.equal(grouped, torch.stack(one_by_one) if one_by_one else x)
    assert restore.dtype == torch.int64


def test_an_expert_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="between 0 and 2"):
        expert_dispatch(torch.ones(2, 3), torch.tensor([0, 3]), 3)
    with pytest.raises(ValueError, match="2 entries for 3 tokens"):
        expert_dispatch(torch.ones(3, 3), torch.tensor([0, 1]), 3)
