"""Decoding with a cache against the full causal pass, and the cache at its edges."""

import jaxtyping
import pytest
import torch
import torch.nn.functional as F

from course_lib.kv_cache import FIRST_CAPACITY, KVCache

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def draw(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def part(tensor, start, stop):
    return tensor[..., start:stop, :]


@pytest.mark.parametrize("max_length", [None, 37, 50])
@pytest.mark.parametrize("prefill", [1, 2, 5])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_prefill_and_single_steps_equal_the_full_causal_pass(prefill, max_length, dtype):
    length = 37
    query, key, value = (draw(2, 3, length, d, seed=d, dtype=dtype) for d in (4, 4, 5))
    wanted = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    cache = KVCache(max_length)
    cache.append(part(key, 0, prefill), part(value, 0, prefill))
    for step in range(prefill, length):
        keys, values = cache.append(part(key, step, step + 1), part(value, step, step + 1))
        got = F.scaled_dot_product_attention(part(query, step, step + 1), keys, values)
        torch.testing.assert_close(got, part(wanted, step, step + 1), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
        assert cache.length == step + 1
    assert torch.equal(keys, key)
    assert torch.equal(values, value)


def test_any_number_of_leading_axes_will_do():
    for leading in ((), (3,), (2, 1, 3)):
        cache, key, value = KVCache(), draw(*leading, 5, 4), draw(*leading, 5, 2)
        cache.append(part(key, 0, 2), part(value, 0, 2))
        keys, values = cache.append(part(key, 2, 5), part(value, 2, 5))
        assert torch.equal(keys, key)
        assert torch.equal(values, value)


def test_the_caller_may_reuse_his_tensors():
    cache, key, value = KVCache(), draw(2, 3, 4), draw(2, 3, 5)
    wanted = key.clone(), value.clone()
    cache.append(key, value)
    key.zero_()
    value.zero_()
    keys, values = cache.append(draw(2, 1, 4), draw(2, 1, 5))
    assert torch.equal(keys[:, :3], wanted[0])
    assert torch.equal(values[:, :3], wanted[1])


def test_what_was_returned_before_stays_as_it_was():
    cache = KVCache()
    first, _ = cache.append(draw(2, 3, 4), draw(2, 3, 5))
    before = first.clone()
    cache.append(draw(2, 1, 4), draw(2, 1, 5))
    cache.reset()
    cache.append(draw(2, 3, 4, seed=9), draw(2, 3, 5))
    assert torch.equal(first, before)


def test_overflow_is_refused_and_changes_nothing():
    cache, key, value = KVCache(4), draw(2, 3, 4), draw(2, 3, 5)
    cache.append(key, value)
    with pytest.raises(ValueError, match="holds 3 of at most 4 tokens; 2 more do not fit"):
        cache.append(draw(2, 2, 4), draw(2, 2, 5))
    assert cache.length == 3
    last = draw(2, 1, 4, seed=5), draw(2, 1, 5, seed=5)
    keys, values = cache.append(*last)
    assert torch.equal(keys, torch.cat([key, last[0]], 1))
    assert torch.equal(values, torch.cat([value, last[1]], 1))


def test_after_a_reset_another_batch_and_width_may_come():
    cache = KVCache(6)
    cache.append(draw(2, 5, 4), draw(2, 5, 5))
    cache.reset()
    assert cache.length == 0
    key, value = draw(3, 6, 2), draw(3, 6, 7)
    assert torch.equal(cache.append(key, value)[0], key)


def test_room_grows_by_doubling_so_that_most_steps_copy_nothing_old():
    cache, buffers = KVCache(), set()
    for _ in range(8 * FIRST_CAPACITY):
        keys, _ = cache.append(draw(1, 4), draw(1, 4))
        buffers.add(keys.data_ptr())
    assert len(buffers) <= 4


def test_no_gradient_is_recorded():
    cache = KVCache()
    keys, values = cache.append(draw(2, 3, 4).requires_grad_(), draw(2, 3, 5).requires_grad_())
    assert not keys.requires_grad
    assert not values.requires_grad


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ((2, 1, 4), (2, 2, 5), r"`key` \(2, 1, 4\) and `value` \(2, 2, 5\) must be"),
        ((3, 1, 4), (3, 1, 5), r"`key` \(3, 1, 4\) does not continue what the cache holds, \(2, 3, 4\)"),
        ((2, 1, 4), (2, 1, 6), r"`value` \(2, 1, 6\) does not continue what the cache holds, \(2, 3, 5\)"),
    ],
)
def test_tensors_that_do_not_continue_the_cache_are_refused_and_change_nothing(
    key, value, message, unchecked_annotations
):
    cache = KVCache()
    cache.append(draw(2, 3, 4), draw(2, 3, 5))
    with pytest.raises(ValueError, match=message):
        cache.append(draw(*key), draw(*value))
    assert cache.length == 3


def test_another_dtype_is_refused():
    cache = KVCache()
    cache.append(draw(3, 4), draw(3, 5))
    with pytest.raises(ValueError, match=r"`key` is torch.float32 on cpu, and the cache holds torch.float64 on cpu"):
        cache.append(draw(1, 4, dtype=torch.float32), draw(1, 5))


@pytest.mark.parametrize(("wrong", "error"), [(0, ValueError), (2.5, TypeError), (True, TypeError)])
def test_a_limit_that_is_no_count_is_refused(wrong, error, unchecked_annotations):
    with pytest.raises(error, match="`max_length` must be"):
        KVCache(wrong)
