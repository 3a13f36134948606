"""Check `attention_scores`: every query against every key, divided by √d_k."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.attention import CHAPTER
from autograder.exercises.attention.parts import dot_products, scaled_scores
from autograder.exercises.attention.properties import dtype_kept
from autograder.exercises.attention.whole_attention import ABOVE_LEADING
from autograder.program import Program, call
from course_lib import attention

WIDE = 64  # the width of a head in most published models


def query_and_key(draw: Draw, *leading: int) -> Program:
    """Draw a query and a key whose sizes all differ."""
    n_q, n_k, d_k = draw.sizes(3, low=ABOVE_LEADING if leading else 2)
    return call(draw.normal(*leading, n_q, d_k), draw.normal(*leading, n_k, d_k))


def query_and_key_larger(draw: Draw) -> Program:
    """Draw arrays so large that float32 arithmetic shows in some entry."""
    n_q, n_k, d_k = draw.sizes(3, low=9, high=20)
    return call(draw.normal(n_q, d_k), draw.normal(n_k, d_k))


def long_keys(draw: Draw) -> Program:
    """Draw keys of very different length."""
    n_q, n_k, d_k = draw.sizes(3)
    lengths = draw.uniform(n_k, 1, low=0.1, high=10.0)
    return call(draw.normal(n_q, d_k), draw.normal(n_k, d_k) * lengths)


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=attention.attention_scores,
    returns=("scores",),
    properties=[dtype_kept],
    cases=[
        Case("5 queries over 7 keys", lambda draw: call(draw.normal(5, 3), draw.normal(7, 3))),
        Case("all sizes differ", query_and_key),
        Case("a batch of several heads", lambda draw: query_and_key(draw, 2, 3), hidden=True),
        Case("one query", lambda draw: call(draw.normal(1, 5), draw.normal(4, 5)), hidden=True),
        Case("a wide head", lambda draw: call(draw.normal(3, WIDE), draw.normal(6, WIDE)), hidden=True),
        Case("long and short keys", long_keys, hidden=True),
        Case("a cube", lambda draw: call(draw.normal(4, 4, 4), draw.normal(4, 4, 4)), hidden=True),
        Case("float32", query_and_key_larger, hidden=True, dtype="float32"),
    ],
)


@exercise.misconception("""
    These are the plain dot products: every number is √d_k times the expected one. Draw queries and keys of width
    4 and 64 and print the standard deviation of the scores; the division keeps it at 1.
""")
def no_scale(query, key):
    return dot_products(query, key)


@exercise.misconception("""
    Every number is too small by √d_k: you divide by d_k, not by its root. A sum of d_k independent terms grows
    like √d_k, so that is what brings it back to 1.
""")
def divided_by_width(query, key):
    return dot_products(query, key) / query.shape[-1]


@exercise.misconception("""
    Every number is d_k times the expected one: you multiply by √d_k where you should divide. If you prepared a
    factor d_k ** -0.5, multiply by it.
""")
def multiplied_by_root(query, key):
    return dot_products(query, key) * math.sqrt(query.shape[-1])


@exercise.misconception("""
    You divide by the root of the number of queries. One more query would then change the scores of all others.
    How many products does one score sum up? That number is an axis of the query, but not this one.
""")
def scale_from_number_of_queries(query, key):
    return dot_products(query, key) / math.sqrt(query.shape[-2])


@exercise.misconception("""
    You divide by the root of the number of keys. One more key would then change the scores of all others. How many
    products does one score sum up?
""")
def scale_from_number_of_keys(query, key):
    return dot_products(query, key) / math.sqrt(key.shape[-2])


@exercise.misconception("""
    One sequence works, but in a batch the scale comes from axis 1, which then holds heads or queries. Count the axis
    from the end: the features are always the last one.
""")
def scale_from_axis_one(query, key):
    return dot_products(query, key) / math.sqrt(query.shape[1])


@exercise.misconception("""
    Your table lies on its side: it has a row for each key. Rows belong to the queries and columns to the keys. In
    which order do you multiply, and which of the two is transposed?
""")
def rows_for_keys(query, key):
    return scaled_scores(key, query)


@exercise.misconception("""
    All your scores lie between -1 and 1: these are cosines, which forget how long a key is. A dot product does not:
    make one key ten times as long, and its scores must grow tenfold. Do yours?
""")
def cosine_similarity(query, key):
    lengths = (np.linalg.norm(array, axis=-1, keepdims=True) for array in (query, key))
    query, key = (array / length for array, length in zip((query, key), lengths, strict=True))
    return dot_products(query, key)


@exercise.misconception("""
    You compare the queries with themselves: change the keys, and nothing moves. A query looks through the keys.
""")
def query_used_as_key(query, key):
    return scaled_scores(query, query)


@exercise.misconception("""
    Your scores are distances turned negative: the best match is the nearest key. Attention asks for the dot product
    instead, in which a long key in the right direction wins over a near one.
""")
def negative_distance(query, key):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sqrt((differences**2).sum(-1)) / math.sqrt(query.shape[-1])


@exercise.misconception("""
    Your rows sum to 1: the softmax has run already. Scores come before it, and may be of any size and sign.
""")
def weights_instead_of_scores(query, key):
    return attention.softmax(scaled_scores(query, key))


@exercise.misconception("""
    One sequence works, a batch does not: `.T` turns all axes around, batch and heads too. With a (2, 3, 5, 4) array,
    print `key.T.shape`. Which two axes did you want to swap?
""")
def every_axis_transposed(query, key):
    return query @ key.T / math.sqrt(query.shape[-1])


@exercise.misconception("""
    Your scores are float64 although query and key are float32: `np.sqrt(d_k)` is a float64 number of NumPy, and
    dividing by it widens the whole array. `math.sqrt(d_k)` or `d_k ** 0.5` gives a Python number, which does not.
""")
def widened_by_the_root(query, key):
    return dot_products(query, key) / np.sqrt(query.shape[-1])


@exercise.misconception("""
    Your scores are float64 although query and key are float32: an array was made or cast to float64 on the way.
    Return the dtype of the inputs; half the memory of a model depends on it.
""")
def result_in_float64(query, key):
    return scaled_scores(query.astype(np.float64), key.astype(np.float64))


@exercise.alternative
def query_scaled_first(query, key):
    return dot_products(query * query.shape[-1] ** -0.5, key)


@exercise.alternative
def both_scaled_by_the_fourth_root(query, key):
    root = query.shape[-1] ** 0.25
    return dot_products(query / root, key / root)


@exercise.alternative
def keys_times_queries(query, key):
    return np.swapaxes(scaled_scores(key, query), -1, -2)


@exercise.alternative
def by_einsum(query, key):
    return np.einsum("...id,...jd->...ij", query, key) / math.sqrt(query.shape[-1])


@exercise.alternative
def root_in_the_dtype_of_the_query(query, key):
    return dot_products(query, key) / np.sqrt(query.shape[-1], dtype=query.dtype)


@exercise.alternative
def products_summed(query, key):
    return (query[..., :, None, :] * key[..., None, :, :]).sum(-1) / math.sqrt(query.shape[-1])


@exercise.alternative
def one_pair_at_a_time(query, key):
    scores = np.empty((*query.shape[:-1], key.shape[-2]), dtype=query.dtype)
    for index in np.ndindex(scores.shape):
        scores[index] = query[index[:-1]] @ key[(*index[:-2], index[-1])] / math.sqrt(query.shape[-1])
    return scores
