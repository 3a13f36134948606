"""The fused projection and shared key heads, against separate products and the framework."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import jaxtyping
import pytest
import torch
import torch.nn.functional as F

from course_lib.grouped_query import fused_qkv, grouped_query_attention
from course_lib.memory import allocated_shapes
from course_lib.tensor_attention import tensor_attention

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
EVERY_DTYPE = pytest.mark.parametrize("dtype", TOLERANCE)


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def draw(*shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=dtype)


def grouped(heads, groups, dtype=torch.float64):
    return draw(2, heads, 5, 4, dtype=dtype), draw(2, groups, 7, 4, dtype=dtype), draw(2, groups, 7, 3, dtype=dtype)


@EVERY_DTYPE
@pytest.mark.parametrize("widths", [(8, 8, 8), (8, 2, 5)])
def test_the_fused_projection_equals_three_products(widths, dtype):
    x, matrices = draw(2, 3, 6, dtype=dtype), [draw(6, width, dtype=dtype) for width in widths]
    for got, matrix in zip(fused_qkv(x, *matrices), matrices, strict=True):
        torch.testing.assert_close(got, x @ matrix, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_a_matrix_of_another_height_is_refused(unchecked_annotations):
    with pytest.raises(ValueError, match=r"`w_k` \(5, 8\) must have as many rows"):
        fused_qkv(draw(3, 6), draw(6, 8), draw(5, 8), draw(6, 8))


@EVERY_DTYPE
@pytest.mark.parametrize(("heads", "groups"), [(6, 2), (6, 3), (6, 1), (6, 6)])
def test_grouped_queries_equal_the_framework(heads, groups, dtype):
    query, key, value = grouped(heads, groups, dtype)
    wanted = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    got = grouped_query_attention(query, key, value)
    torch.testing.assert_close(got, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_gradients_of_grouped_queries_equal_those_of_repeated_keys():
    ours, theirs = ([tensor.requires_grad_() for tensor in grouped(6, 2)] for _ in range(2))
    query, key, value = theirs
    repeated = tensor_attention(query, key.repeat_interleave(3, 1), value.repeat_interleave(3, 1))[0]
    grouped_query_attention(*ours).square().sum().backward()
    repeated.square().sum().backward()
    for mine, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, wanted.grad, rtol=1e-10, atol=1e-12)


def test_keys_and_values_are_not_copied_for_every_query_head():
    query, key, value = grouped(6, 2)
    shapes = allocated_shapes(grouped_query_attention, query, key, value)
    assert not any(torch.Size(shape).numel() == 6 * key[:, 0].numel() for shape in shapes)


def test_key_heads_that_queries_cannot_share_evenly_are_refused():
    with pytest.raises(ValueError, match="`key` has 4 heads, which do not share 6 query heads evenly"):
        grouped_query_attention(*grouped(6, 4))


def test_different_numbers_of_key_and_value_heads_are_refused(unchecked_annotations):
    query, key, _ = grouped(6, 2)
    with pytest.raises(ValueError, match="`key` has 2 heads and `value` has 3"):
        grouped_query_attention(query, key, grouped(6, 3)[2])
