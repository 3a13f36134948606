"""Linear attention against its quadratic form, and its state against the full pass."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import jaxtyping
import pytest
import torch

from course_lib.efficient.linear import (
    LONGEST_CHUNK,
    LinearState,
    elu_features,
    kernel_attention,
    linear_attention,
)
from course_lib.masks import causal_mask
from course_lib.memory import allocated_shapes, peak_bytes

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
HALF_TOLERANCE = 2e-2
EVERY_DTYPE = pytest.mark.parametrize("dtype", TOLERANCE)
LENGTHS = pytest.mark.parametrize(("n_q", "n_k"), [(11, 11), (6, 13), (1, 7), (9, 4), (1, 1)])


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def draw(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def inputs(n_q, n_k, dtype=torch.float64, leading=(2, 3)):
    return tuple(draw(*leading, n, d, seed=d, dtype=dtype) for n, d in ((n_q, 4), (n_k, 4), (n_k, 5)))


def quadratic(query, key, value, causal):
    """Write the table of all pairs out, as the definition has it."""
    table = (torch.nn.functional.elu(query) + 1) @ (torch.nn.functional.elu(key) + 1).mT
    if causal:
        table = table.masked_fill(causal_mask(*table.shape[-2:]), 0)
    total = table.sum(-1, keepdim=True)
    return torch.where(total > 0, table / total, 0) @ value


def assert_near(got, wanted, tolerance):
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


@EVERY_DTYPE
@LENGTHS
@pytest.mark.parametrize("causal", [False, True])
def test_running_sums_give_what_the_table_of_all_pairs_gives(n_q, n_k, causal, dtype):
    query, key, value = inputs(n_q, n_k, dtype)
    wanted = quadratic(query, key, value, causal)
    assert_near(linear_attention(query, key, value, causal), wanted, TOLERANCE[dtype])


@pytest.mark.parametrize("causal", [False, True])
def test_a_sequence_of_many_chunks_gives_the_same_too(causal):
    length = 3 * LONGEST_CHUNK**2 // 2 + 5
    query, key, value = inputs(length, length, leading=(1,))
    wanted = quadratic(query, key, value, causal)
    assert_near(linear_attention(query, key, value, causal), wanted, TOLERANCE[torch.float64])


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_equal_those_of_the_table_and_finite_differences(causal):
    ours, theirs = ([tensor.requires_grad_() for tensor in inputs(7, 7)] for _ in range(2))
    for output in (linear_attention(*ours, causal), quadratic(*theirs, causal)):
        (output * draw(*output.shape, seed=9)).sum().backward()
    for mine, wanted in zip(ours, theirs, strict=True):
        assert_near(mine.grad, wanted.grad, TOLERANCE[torch.float64])
    small = [tensor.requires_grad_() for tensor in inputs(4, 5, leading=())]
    assert torch.autograd.gradcheck(lambda *given: linear_attention(*given, causal), small)


def test_a_later_token_changes_no_earlier_output():
    query, key, value = inputs(20, 20)
    before = linear_attention(query, key, value, causal=True)
    changed_key, changed_value = key.clone(), value.clone()
    changed_key[..., 13, :] += 5
    changed_value[..., 13, :] -= 5
    after = linear_attention(query, changed_key, changed_value, causal=True)
    assert torch.equal(before[..., :13, :], after[..., :13, :])
    assert not torch.isclose(before[..., 13:, :], after[..., 13:, :]).any()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [8, 40, 300])
def test_no_table_of_all_pairs_is_allocated(length, causal):
    query, key, value = inputs(length, length)
    shapes = allocated_shapes(linear_attention, query, key, value, causal, views=True)
    assert (length, length) not in {shape[-2:] for shape in shapes}


def test_twice_the_sequence_takes_little_more_than_twice_the_memory():
    peaks = [peak_bytes(linear_attention, *inputs(n, n), causal=True).bytes for n in (64**2, 2 * 64**2)]
    assert peaks[1] == pytest.approx(2 * peaks[0], rel=0.01)


def test_features_far_below_zero_stay_positive_in_half_precision():
    x = torch.tensor([-8.0, -20.0], dtype=torch.bfloat16)
    assert (elu_features(x) > 0).all()
    assert not (torch.nn.functional.elu(x) + 1).any()  # the usual form loses them


@pytest.mark.parametrize("causal", [False, True])
def test_half_precision_is_summed_in_single(causal):
    query, key, value = inputs(50, 50, torch.bfloat16)
    got = linear_attention(query, key, value, causal)
    assert got.dtype == torch.bfloat16
    wanted = quadratic(query.double(), key.double(), value.double(), causal)
    assert_near(got.double(), wanted, HALF_TOLERANCE)


def test_a_query_whose_weights_are_all_zero_gets_zero():
    features = torch.zeros(3, 2)
    assert not kernel_attention(features, features + 1, draw(3, 4, dtype=torch.float32)).any()


@pytest.mark.parametrize("pieces", [(11,), (1,) * 11, (4, 1, 6)])
def test_decoding_step_by_step_equals_the_full_pass(pieces):
    query, key, value = inputs(11, 11)
    wanted = linear_attention(query, key, value, causal=True)
    state, outputs, start = LinearState(), [], 0
    for piece in pieces:
        now = slice(start, start + piece)
        outputs.append(state.append(query[..., now, :], key[..., now, :], value[..., now, :]))
        start += piece
    assert_near(torch.cat(outputs, -2), wanted, TOLERANCE[torch.float64])
    assert state.length == 11
    assert state.sums.shape == (2, 3, 4, 6)


def test_tensors_that_do_not_fit_are_refused_by_name(unchecked_annotations):
    query, key, value = inputs(3, 5)
    with pytest.raises(ValueError, match=r"`query` .* and `key` .* same size along axis -1"):
        linear_attention(query[..., :2], key, value)
    with pytest.raises(ValueError, match=r"`value` .* same size along axis -2"):
        linear_attention(query, key, value[..., :4, :])
