"""Tiled attention, forward and backward, against the quadratic form, the framework and finite differences."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import math

import jaxtyping
import pytest
import torch
import torch.nn.functional as F
from torch.autograd.gradcheck import GradcheckError

from course_lib.efficient import flash
from course_lib.efficient.flash import flash_attention, flash_attention_with_lse, merge_partial_attention
from course_lib.efficient.tile_sweep import tile_states
from course_lib.masks import causal_mask
from course_lib.memory import allocated_shapes, saved_bytes
from course_lib.tensor_attention import tensor_attention

TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-13}
GRADIENT_TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}
HALF_TOLERANCE = 2e-2  # a few units in the last place of bfloat16
EVERY_DTYPE = pytest.mark.parametrize("dtype", TOLERANCE)


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def draw(*shape, seed=0, scale=1.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return scale * torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def inputs(n_q, n_k, dtype=torch.float64, leading=(2, 3)):
    query, key = draw(*leading, n_q, 4, seed=1, scale=3, dtype=dtype), draw(*leading, n_k, 4, seed=2, dtype=dtype)
    return query, key, draw(*leading, n_k, 5, seed=3, dtype=dtype)


def assert_near(got, wanted, tolerance):
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


@EVERY_DTYPE
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n_q", "n_k", "block_size"), [(11, 11, 4), (7, 13, 3), (1, 9, 4), (13, 6, 4), (5, 5, 8)])
def test_tiles_give_what_the_whole_table_gives(n_q, n_k, block_size, causal, dtype):
    query, key, value = inputs(n_q, n_k, dtype)
    mask = causal_mask(n_q, n_k) if causal else None
    wanted = tensor_attention(query, key, value, mask)[0]
    assert_near(flash_attention(query, key, value, block_size, causal), wanted, TOLERANCE[dtype])


@EVERY_DTYPE
@pytest.mark.parametrize("causal", [False, True])
def test_tiles_give_what_the_framework_gives(causal, dtype):
    query, key, value = inputs(11, 11, dtype)
    wanted = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    assert_near(flash_attention(query, key, value, 4, causal), wanted, TOLERANCE[dtype])


@EVERY_DTYPE
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n_q", "n_k"), [(11, 11), (7, 13), (13, 6)])
def test_gradients_equal_those_of_the_whole_table(n_q, n_k, causal, dtype):
    ours, theirs = ([tensor.requires_grad_() for tensor in inputs(n_q, n_k, dtype)] for _ in range(2))
    outputs = (
        flash_attention(*ours, 4, causal),
        tensor_attention(*theirs, causal_mask(n_q, n_k) if causal else None)[0],
    )
    for output in outputs:
        (output * draw(*output.shape, seed=9, dtype=dtype)).sum().backward()
    for mine, wanted in zip(ours, theirs, strict=True):
        assert_near(mine.grad, wanted.grad, GRADIENT_TOLERANCE[dtype])


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_output_and_log_sum_exp_pass_finite_differences(causal):
    tensors = [tensor.requires_grad_() for tensor in inputs(5, 7, leading=())]
    assert torch.autograd.gradcheck(lambda *given: flash_attention_with_lse(*given, 3, causal), tensors)


def test_a_wrong_backward_would_fail_the_finite_differences(monkeypatch):
    right = flash._backward
    monkeypatch.setattr(flash, "_backward", lambda *given: tuple(1.01 * grad for grad in right(*given)))
    tensors = [tensor.requires_grad_() for tensor in inputs(5, 7, leading=())]
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(lambda *given: flash_attention(*given, 3), tensors)


def test_neither_pass_allocates_the_table():
    query, key, value = (tensor.requires_grad_() for tensor in inputs(40, 56))

    def both_passes():
        flash_attention(query, key, value, 8, causal=True).sum().backward()

    shapes = allocated_shapes(both_passes, views=True)
    assert (40, 56) not in {shape[-2:] for shape in shapes}
    assert max(torch.Size(shape).numel() for shape in shapes) == 2 * 3 * 56 * 5
    whole = allocated_shapes(tensor_attention, query, key, value, views=True)
    assert (40, 56) in {shape[-2:] for shape in whole}


def test_what_is_kept_for_the_backward_pass_is_linear_in_the_sequence():
    kept = []
    for length in (32, 64):
        query, key, value = (tensor.requires_grad_() for tensor in inputs(length, length))
        kept.append(saved_bytes(flash_attention, query, key, value, 8))
    assert kept[1] == 2 * kept[0]


def test_large_scores_overflow_nowhere():
    query, key, value = inputs(9, 9, torch.float32)
    got = flash_attention(1000 * query, key, value, 4)
    assert_near(got, tensor_attention(1000 * query, key, value)[0], TOLERANCE[torch.float32])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_accumulates_in_single(dtype):
    query, key, value = inputs(33, 33, dtype)
    got = flash_attention(query, key, value, 4)
    assert got.dtype == dtype
    wanted = tensor_attention(query.double(), key.double(), value.double())[0]
    assert_near(got.double(), wanted, HALF_TOLERANCE)


def test_queries_before_every_key_give_zero_and_no_gradient():
    query, key, value = (tensor.requires_grad_() for tensor in inputs(7, 3))
    output, lse = flash_attention_with_lse(query, key, value, 2, causal=True)
    output.sum().backward()
    assert not output[..., :4, :].any()
    assert (lse[..., :4] == -math.inf).all()
    assert not query.grad[..., :4, :].any()
    assert all(tensor.grad.isfinite().all() for tensor in (query, key, value))


@pytest.mark.parametrize(
    ("block_size", "error", "message"),
    [
        (0, ValueError, "`block_size` must be at least 1, got 0"),
        (2.0, TypeError, "`block_size` must be an int, got float"),
        (True, TypeError, "`block_size` must be an int, got bool"),
    ],
)
def test_a_block_size_that_makes_no_tiles_is_refused(block_size, error, message, unchecked_annotations):
    with pytest.raises(error, match=message):
        flash_attention(*inputs(3, 3), block_size)


def test_tensors_that_do_not_fit_are_refused_by_name(unchecked_annotations):
    query, key, value = inputs(3, 5)
    with pytest.raises(ValueError, match=r"`query` .* and `key` .* must have the same size along axis -1"):
        flash_attention(query[..., :2], key, value, 2)
    with pytest.raises(ValueError, match=r"`value` .* and `key` .* must have the same size along axis -2"):
        flash_attention(query, key, value[..., :4, :], 2)


@EVERY_DTYPE
def test_parts_over_two_sets_of_keys_merge_to_the_whole(dtype):
    query, key, value = inputs(5, 11, dtype)
    parts = [flash_attention_with_lse(query, key[..., s, :], value[..., s, :], 3) for s in (slice(4), slice(4, 11))]
    out, lse = merge_partial_attention(*parts[0], *parts[1])
    wanted_out, wanted_lse = flash_attention_with_lse(query, key, value, 3)
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    assert_near(wanted_lse, scores.logsumexp(-1), TOLERANCE[dtype] * 10)
    assert_near(out, wanted_out, TOLERANCE[dtype])
    assert_near(lse, wanted_lse, TOLERANCE[dtype])


def test_merging_is_the_same_in_either_order_and_grouping():
    parts = [(draw(3, 4, seed=i), draw(3, seed=i, scale=5)) for i in range(3)]
    first = merge_partial_attention(*merge_partial_attention(*parts[0], *parts[1]), *parts[2])
    second = merge_partial_attention(*parts[1], *merge_partial_attention(*parts[2], *parts[0]))
    for one, other in zip(first, second, strict=True):
        assert_near(one, other, TOLERANCE[torch.float64])


def test_a_part_that_saw_nothing_changes_nothing():
    out, lse = draw(3, 4), draw(3)
    nothing = torch.zeros(3, 4, dtype=torch.float64), torch.full((3,), -math.inf, dtype=torch.float64)
    for merged in (merge_partial_attention(out, lse, *nothing), merge_partial_attention(*nothing, out, lse)):
        assert_near(merged[0], out, TOLERANCE[torch.float64])
        assert_near(merged[1], lse, TOLERANCE[torch.float64])
    empty_out, empty_lse = merge_partial_attention(*nothing, *nothing)
    assert not empty_out.any()
    assert (empty_lse == -math.inf).all()


def test_merging_has_the_gradients_of_finite_differences_and_none_where_nothing_was_seen():
    tensors = [tensor.requires_grad_() for tensor in (draw(3, 4), draw(3), draw(3, 4, seed=5), draw(3, seed=5))]
    assert torch.autograd.gradcheck(merge_partial_attention, tensors)
    lse = torch.full((3,), -math.inf, dtype=torch.float64, requires_grad=True)
    merge_partial_attention(tensors[0], lse, tensors[2], lse)[0].sum().backward()
    assert not lse.grad.any()


def test_log_sum_exps_in_the_thousands_merge_without_overflow():
    large = torch.full((3,), 5000.0, dtype=torch.float64)
    out, lse = merge_partial_attention(draw(3, 4), large, draw(3, 4, seed=5), large)
    assert_near(out, (draw(3, 4) + draw(3, 4, seed=5)) / 2, TOLERANCE[torch.float64])
    assert_near(lse, large + math.log(2), TOLERANCE[torch.float64])


def test_parts_of_different_shapes_do_not_merge(unchecked_annotations):
    with pytest.raises(ValueError, match=r"got \(3, 4\), \(3, 4\) and \(3, 1\), \(3,\)"):
        merge_partial_attention(draw(3, 4), draw(3, 1), draw(3, 4), draw(3))


@pytest.mark.parametrize("block_size", [1, 3, 20])
def test_the_sweep_ends_at_the_whole_softmax_and_knows_the_maximum_on_the_way(block_size):
    scores, value = draw(11, scale=4), draw(11, 3)
    states = tile_states(scores, value, block_size)
    assert [state.stop for state in states] == [*range(block_size, 11, block_size), 11]
    for state in states:
        seen = scores[: state.stop]
        assert state.largest == seen.max()
        assert state.total == pytest.approx((seen - seen.max()).exp().sum().item())
        assert state.output == pytest.approx((seen.softmax(0) @ value[: state.stop]).tolist())
    assert states[0].shrink == 0
    assert all(0 < state.shrink <= 1 for state in states[1:])
