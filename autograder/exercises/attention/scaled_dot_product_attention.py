"""Check `scaled_dot_product_attention`: the whole operation, with a mask."""

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.attention import CHAPTER
from autograder.exercises.attention.properties import weights_of_a_pair
from autograder.program import Program, call
from course_lib import attention
from course_lib.attention import softmax

LARGE_SCORES = 40.0  # scale of queries and keys that brings scores near a thousand


def inputs(draw: Draw, *leading: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw a query, a key and a value whose sizes all differ."""
    n_q, n_k, d_k, d_v = draw.sizes(4)
    query = draw.normal(*leading, n_q, d_k, scale=scale)
    return query, draw.normal(*leading, n_k, d_k, scale=scale), draw.normal(*leading, n_k, d_v)


def more_queries_than_keys(draw: Draw) -> Program:
    """Draw sizes at which a softmax over the wrong axis has the right shape."""
    return call(draw.normal(7, 3), draw.normal(5, 3), draw.normal(5, 4))


def masked(draw: Draw) -> Program:
    """Hide some keys from every query."""
    query, key, value = inputs(draw)
    return call(query, key, value, draw.mask(len(query), len(key)))


def loud_hidden_key(draw: Draw) -> Program:
    """Hide the key with by far the largest score: it must not be felt."""
    query, key, value = inputs(draw)
    mask = draw.mask(len(query), len(key))
    mask[:, 0], mask[:, 1] = True, False
    query[:, 0] = np.abs(query[:, 0]) + 1
    key[0, 0], value[0] = 5, 100
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


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=attention.scaled_dot_product_attention,
    returns=("output", "weights"),
    properties=[weights_of_a_pair],
    forbids=[
        "torch.nn.functional.scaled_dot_product_attention",
        "torch.nn.functional.multi_head_attention_forward",
    ],
    cases=[
        Case("7 queries over 5 keys", more_queries_than_keys),
        Case("all sizes differ", lambda draw: call(*inputs(draw))),
        Case("some keys hidden", masked),
        Case("a batch of several heads", lambda draw: call(*inputs(draw, 2, 3)), hidden=True),
        Case("scores near a thousand", lambda draw: call(*inputs(draw, scale=LARGE_SCORES)), hidden=True),
        Case("the loudest key is hidden", loud_hidden_key, hidden=True),
        Case("one query sees nothing", one_query_sees_nothing, hidden=True),
        Case("one mask for batch and heads", mask_shared_by_the_batch, hidden=True),
        Case("a mask for each batch row", mask_of_padding, hidden=True),
        Case("float32", masked, hidden=True, dtype="float32"),
    ],
)


def _hide(scores, mask):
    return scores if mask is None else np.where(mask, -np.inf, scores)


def _scores(query, key):
    return query @ np.swapaxes(key, -1, -2)


@exercise.misconception("""
    Each column of your weights sums to 1, but each row should. A row belongs to one query: it shares out that
    query's attention over all keys. Your softmax lets the queries compete for a key instead. Which axis of the
    (query, key) table runs over the keys?
""")
def softmax_over_queries(query, key, value, mask=None):
    scores = _hide(_scores(query, key) / np.sqrt(query.shape[-1]), mask)
    weights = np.swapaxes(softmax(np.swapaxes(scores, -1, -2)), -1, -2)
    return weights @ value, weights


@exercise.misconception("""
    All your weights together sum to 1, but each row should do so by itself. Which axis must the softmax's sum
    run over, and does it keep that axis (`keepdims`)?
""")
def softmax_over_everything(query, key, value, mask=None):
    scores = _hide(_scores(query, key) / np.sqrt(query.shape[-1]), mask)
    exponentials = np.exp(scores - scores.max())
    weights = exponentials / exponentials.sum()
    return weights @ value, weights


@exercise.misconception("""
    Your weights are sharper than expected: they are those of scores that were never divided by √d_k. Print the
    standard deviation of your scores for d_k = 4 and d_k = 64 to see what the division is for.
""")
def no_scale(query, key, value, mask=None):
    weights = softmax(_hide(_scores(query, key), mask))
    return weights @ value, weights


@exercise.misconception("""
    Your weights are flatter than expected: the scores were divided by d_k, not by its square root. A sum of d_k
    independent terms grows like √d_k, so that is what brings it back to 1.
""")
def divided_by_width(query, key, value, mask=None):
    weights = softmax(_hide(_scores(query, key) / query.shape[-1], mask))
    return weights @ value, weights


@exercise.misconception("""
    Your scores grow with the width: they were multiplied by √d_k where they should be divided. If you prepared a
    factor d_k ** -0.5, multiply by it.
""")
def multiplied_by_root(query, key, value, mask=None):
    weights = softmax(_hide(_scores(query, key) * np.sqrt(query.shape[-1]), mask))
    return weights @ value, weights


@exercise.misconception("""
    The scale comes from the width of the values here. A score sums over the d_k features that queries and keys
    share; the values, and their width d_v, play no part in it.
""")
def scale_from_value_width(query, key, value, mask=None):
    weights = softmax(_hide(_scores(query, key) / np.sqrt(value.shape[-1]), mask))
    return weights @ value, weights


@exercise.misconception("""
    The scale comes from the number of keys. It should come from d_k, the number of features: adding a token must
    not change the score of two others.
""")
def scale_from_number_of_keys(query, key, value, mask=None):
    weights = softmax(_hide(_scores(query, key) / np.sqrt(key.shape[-2]), mask))
    return weights @ value, weights


@exercise.misconception("""
    Your rows sum to 1/√d_k: the division comes after the softmax. It should act on the scores, before it; the
    weights are shares and must stay so.
""")
def scale_after_softmax(query, key, value, mask=None):
    weights = softmax(_hide(_scores(query, key), mask)) / np.sqrt(query.shape[-1])
    return weights @ value, weights


@exercise.misconception("""
    There is no softmax between scores and output: your weights are the scores themselves, some negative. Turn each
    row of scores into shares that sum to 1 first.
""")
def no_softmax(query, key, value, mask=None):
    weights = _scores(query, key) / np.sqrt(query.shape[-1])
    weights = weights if mask is None else np.where(mask, 0, weights)
    return weights @ value, weights


@exercise.misconception("""
    Each of your queries takes only the single best key. Attention is soft: every visible key gets a share, and
    the best one just gets the largest.
""")
def hard_argmax(query, key, value, mask=None):
    scores = _hide(_scores(query, key), mask)
    weights = (scores == scores.max(-1, keepdims=True)).astype(scores.dtype)
    return weights @ value, weights


@exercise.misconception("""
    Your weights are right until scores reach the hundreds; then `exp` overflows. Subtract each row's maximum
    first: the same amount from every score of a row changes no weight.
""")
def no_maximum_subtracted(query, key, value, mask=None):
    exponentials = np.exp(_hide(_scores(query, key) / np.sqrt(query.shape[-1]), mask))
    total = exponentials.sum(-1, keepdims=True)
    weights = exponentials / np.where(total == 0, 1, total)
    return weights @ value, weights


@exercise.misconception("""
    Your mask works the wrong way round: the weights lie exactly on the hidden keys. In this course True means
    hidden. (In some libraries True means "may be seen"; if you looked one up, that is why.)
""")
def mask_inverted(query, key, value, mask=None):
    return attention.scaled_dot_product_attention(query, key, value, None if mask is None else ~mask)


@exercise.misconception("""
    Your mask has no effect: hidden keys still get weight. `np.where` returns a new array and leaves the old one as
    it was, so keep what it returns; and check that the mask reaches the scores at all.
""")
def mask_ignored(query, key, value, mask=None):
    return attention.scaled_dot_product_attention(query, key, value)


@exercise.misconception("""
    Hidden keys get weight 0, good, but the visible ones no longer sum to 1: the softmax had already paid for the
    hidden keys when you removed them. What must a score be, before the softmax, so that its share is exactly 0?
""")
def mask_after_softmax(query, key, value, mask=None):
    _, weights = attention.scaled_dot_product_attention(query, key, value)
    weights = weights if mask is None else np.where(mask, 0, weights)
    return weights @ value, weights


@exercise.misconception("""
    A hidden key gets the score 0 in your code, and exp(0) = 1 is not nothing: the softmax gives it a share. Which
    score has the share 0?
""")
def hidden_scores_zeroed(query, key, value, mask=None):
    scores = _scores(query, key) / np.sqrt(query.shape[-1])
    weights = softmax(scores if mask is None else np.where(mask, 0, scores))
    return weights @ value, weights


@exercise.misconception("""
    You add the mask to the scores, so a hidden key gains 1. A boolean mask marks places; a mask that is added
    holds 0 and -inf. Use `np.where` to put -inf where the mask is True.
""")
def mask_added(query, key, value, mask=None):
    scores = _scores(query, key) / np.sqrt(query.shape[-1])
    weights = softmax(scores if mask is None else scores + mask)
    return weights @ value, weights


@exercise.misconception("""
    A query that sees nothing gets equal weights over keys that it must not see: a large negative number stands for
    -inf, and when a whole row has it the softmax shares evenly. In this course such a row has weights 0.
""")
def uniform_when_all_is_hidden(query, key, value, mask=None):
    scores = _scores(query, key) / np.sqrt(query.shape[-1])
    weights = softmax(scores if mask is None else np.where(mask, -1e9, scores))
    return weights @ value, weights


@exercise.misconception("""
    A query that sees nothing becomes NaN: its row is -inf everywhere, and -inf minus -inf has no value. Decide what
    such a row should give (here: weights 0) and handle it before the division.
""")
def nan_when_all_is_hidden(query, key, value, mask=None):
    scores = _hide(_scores(query, key) / np.sqrt(query.shape[-1]), mask)
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    weights = exponentials / exponentials.sum(-1, keepdims=True)
    return weights @ value, weights


@exercise.misconception("""
    Your scores compare the queries with themselves: nothing changes when the keys do. A query looks through the
    keys.
""")
def query_used_as_key(query, key, value, mask=None):
    return attention.scaled_dot_product_attention(query, query, value, mask)


@exercise.misconception("""
    The two results are in the other order: return the output first, then the weights.
""")
def weights_before_output(query, key, value, mask=None):
    return attention.scaled_dot_product_attention(query, key, value, mask)[::-1]


@exercise.misconception("""
    One sequence works, a batch does not: `.T` turns all axes around, batch and heads too. Swap only the last two
    axes of the keys.
""")
def every_axis_transposed(query, key, value, mask=None):
    weights = softmax(_hide(query @ key.T / np.sqrt(query.shape[-1]), mask))
    return weights @ value, weights


@exercise.misconception("""
    One sequence works, but with a batch the softmax runs over axis 1, which then holds heads or queries. Count the
    axis from the end: the keys are always the last one.
""")
def softmax_over_axis_one(query, key, value, mask=None):
    scores = _hide(_scores(query, key) / np.sqrt(query.shape[-1]), mask)
    weights = np.moveaxis(softmax(np.moveaxis(scores, 1, -1)), -1, 1)
    return weights @ value, weights


@exercise.misconception("""
    Your results are float64 although the inputs are float32: a float64 number crept in and widened everything.
    Return the inputs' dtype; half the memory of a model depends on it.
""")
def result_in_float64(query, key, value, mask=None):
    wide = (array.astype(np.float64) for array in (query, key, value))
    return attention.scaled_dot_product_attention(*wide, mask)


@exercise.alternative
def query_scaled_first(query, key, value, mask=None):
    weights = softmax(_hide(_scores(query * query.dtype.type(query.shape[-1] ** -0.5), key), mask))
    return weights @ value, weights


@exercise.alternative
def by_einsum(query, key, value, mask=None):
    scores = np.einsum("...qd,...kd->...qk", query, key) / query.dtype.type(np.sqrt(query.shape[-1]))
    weights = softmax(_hide(scores, mask))
    return np.einsum("...qk,...kv->...qv", weights, value), weights


@exercise.alternative
def keys_times_queries(query, key, value, mask=None):
    scores = np.swapaxes(key @ np.swapaxes(query, -1, -2), -1, -2) / query.dtype.type(np.sqrt(query.shape[-1]))
    weights = softmax(_hide(scores, mask))
    return weights @ value, weights


@exercise.alternative
def by_logsumexp(query, key, value, mask=None):
    scores = _hide(_scores(query, key) / query.dtype.type(np.sqrt(query.shape[-1])), mask)
    peak = scores.max(-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, query.dtype.type(0))
    total = np.exp(scores - peak).sum(-1, keepdims=True)
    weights = np.exp(scores - peak - np.log(np.where(total == 0, query.dtype.type(1), total)))
    return weights @ value, weights


@exercise.alternative
def softmax_in_float64_then_cast(query, key, value, mask=None):
    weights = softmax(_hide(_scores(query.astype(np.float64), key) / np.sqrt(query.shape[-1]), mask))
    weights = weights.astype(query.dtype)
    return weights @ value, weights


@exercise.alternative
def as_a_list_of_two(query, key, value, mask=None):
    return list(attention.scaled_dot_product_attention(query, key, value, mask))


@exercise.alternative
def one_query_at_a_time(query, key, value, mask=None):
    shape = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    full = None if mask is None else np.broadcast_to(mask, (*shape, query.shape[-2], key.shape[-2]))
    rows = [
        attention.scaled_dot_product_attention(
            query[..., i : i + 1, :], key, value, None if full is None else full[..., i : i + 1, :]
        )
        for i in range(query.shape[-2])
    ]
    return np.concatenate([row[0] for row in rows], -2), np.concatenate([row[1] for row in rows], -2)
