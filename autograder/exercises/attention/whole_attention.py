"""Situations and accepted forms of the whole operation, which two exercises share."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case
from autograder.exercises.attention.parts import attend, dot_products, hide, scaled_scores
from autograder.program import Program, call
from course_lib.attention import scaled_dot_product_attention, softmax

ABOVE_LEADING = 4  # batches and heads are 2 and 3 here, so that no axis of a batch has another's size
FAR = 1000.0  # a score at which exp overflows: it has no float64 above 709
LOUD = 5  # a key's feature that gives it the largest score, yet far from underflow in any form
OUT_OF_RANGE = 100  # a value that shows in the output when any weight reaches it


def inputs(
    draw: Draw, *leading: int, scale: float = 1.0, low: int = 2, high: int = 8
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw a query, a key and a value whose sizes all differ."""
    n_q, n_k, d_k, d_v = draw.sizes(4, ABOVE_LEADING if leading else low, high)
    query = draw.normal(*leading, n_q, d_k, scale=scale)
    return query, draw.normal(*leading, n_k, d_k, scale=scale), draw.normal(*leading, n_k, d_v)


def inputs_with_large_scores(draw: Draw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn the first query towards the first key, so that their score is a thousand."""
    query, key, value = inputs(draw)
    query[0] = key[0] * (FAR * math.sqrt(key.shape[-1]) / (key[0] @ key[0]))
    return query, key, value


def masked(draw: Draw) -> Program:
    """Hide some keys from every query."""
    query, key, value = inputs(draw)
    return call(query, key, value, draw.mask(len(query), len(key)))


def masked_larger(draw: Draw) -> Program:
    """Hide some keys in arrays so large that float32 arithmetic shows in some entry."""
    query, key, value = inputs(draw, low=9, high=20)
    return call(query, key, value, draw.mask(len(query), len(key)))


def loud_hidden_key(draw: Draw) -> Program:
    """Hide the key with by far the largest score: it must not be felt."""
    query, key, value = inputs(draw)
    mask = draw.mask(len(query), len(key))
    mask[:, 0], mask[:, 1] = True, False
    query[:, 0] = np.abs(query[:, 0]) + 1
    key[0, 0], value[0] = LOUD, OUT_OF_RANGE
    return call(query, key, value, mask=mask)


def one_query_sees_nothing(draw: Draw) -> Program:
    """Hide every key from one query."""
    query, key, value = inputs(draw)
    mask = draw.mask(len(query), len(key))
    mask[draw.integer(0, len(query) - 1)] = True
    return call(query, key, value, mask)


def mask_shared_by_the_batch(draw: Draw) -> Program:
    """Broadcast one mask over a batch and its heads."""
    query, key, value = inputs(draw, 2, 3)
    return call(query, key, value, draw.mask(query.shape[-2], key.shape[-2]))


def mask_of_padding(draw: Draw) -> Program:
    """Give each batch row a mask of its own, the same for every head and query."""
    query, key, value = inputs(draw, 3, 2)
    return call(query, key, value, draw.mask(3, 1, 1, key.shape[-2]))


HIDDEN_CASES = (
    Case("a batch of several heads", lambda draw: call(*inputs(draw, 2, 3)), hidden=True),
    Case("scores near a thousand", lambda draw: call(*inputs_with_large_scores(draw)), hidden=True),
    Case("the loudest key is hidden", loud_hidden_key, hidden=True),
    Case("one mask for batch and heads", mask_shared_by_the_batch, hidden=True),
    Case("a mask for each batch row", mask_of_padding, hidden=True),
    Case("float32", masked_larger, hidden=True, dtype="float32"),
)


def query_scaled_first(query, key, value, mask=None):
    return attend(hide(dot_products(query * query.shape[-1] ** -0.5, key), mask), value)


def by_einsum(query, key, value, mask=None):
    scores = np.einsum("...qd,...kd->...qk", query, key) / math.sqrt(query.shape[-1])
    weights = softmax(hide(scores, mask))
    return np.einsum("...qk,...kv->...qv", weights, value), weights


def keys_times_queries(query, key, value, mask=None):
    return attend(hide(np.swapaxes(scaled_scores(key, query), -1, -2), mask), value)


def by_logsumexp(query, key, value, mask=None):
    scores = hide(scaled_scores(query, key), mask)
    peak = scores.max(-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0)
    total = np.exp(scores - peak).sum(-1, keepdims=True)
    weights = np.exp(scores - peak - np.log(np.where(total == 0, 1, total)))
    return weights @ value, weights


def softmax_in_float64_then_cast(query, key, value, mask=None):
    weights = softmax(hide(scaled_scores(query.astype(np.float64), key), mask)).astype(query.dtype)
    return weights @ value, weights


def mask_after_softmax_and_renormalized(query, key, value, mask=None):
    weights = softmax(scaled_scores(query, key))
    if mask is not None:
        kept = np.where(mask, 0, weights)
        total = kept.sum(-1, keepdims=True)
        weights = kept / np.where(total == 0, 1, total)
    return weights @ value, weights


def nan_turned_to_zero(query, key, value, mask=None):
    scores = hide(scaled_scores(query, key), mask)
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    weights = np.nan_to_num(exponentials / exponentials.sum(-1, keepdims=True))
    return weights @ value, weights


def large_negative_then_zeroed(query, key, value, mask=None):
    if mask is None:
        return attend(scaled_scores(query, key), value)
    weights = np.where(mask, 0, softmax(np.where(mask, -1e9, scaled_scores(query, key))))
    return weights @ value, weights


def additive_mask(query, key, value, mask=None):
    scores = scaled_scores(query, key)
    return attend(scores if mask is None else scores + np.where(mask, -np.inf, 0).astype(scores.dtype), value)


def as_a_list_of_two(query, key, value, mask=None):
    return list(scaled_dot_product_attention(query, key, value, mask))


def one_query_at_a_time(query, key, value, mask=None):
    shape = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    full = None if mask is None else np.broadcast_to(mask, (*shape, query.shape[-2], key.shape[-2]))
    rows = [
        scaled_dot_product_attention(
            query[..., i : i + 1, :], key, value, None if full is None else full[..., i : i + 1, :]
        )
        for i in range(query.shape[-2])
    ]
    return np.concatenate([row[0] for row in rows], -2), np.concatenate([row[1] for row in rows], -2)


ACCEPTED_FORMS = (
    query_scaled_first,
    by_einsum,
    keys_times_queries,
    by_logsumexp,
    softmax_in_float64_then_cast,
    mask_after_softmax_and_renormalized,
    nan_turned_to_zero,
    large_negative_then_zeroed,
    additive_mask,
    as_a_list_of_two,
    one_query_at_a_time,
)
