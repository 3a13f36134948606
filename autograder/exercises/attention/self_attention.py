"""Check `self_attention`: queries, keys and values from one sequence and three matrices."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises import library_calls
from autograder.exercises.attention import CHAPTER
from autograder.exercises.attention.parts import attend, dot_products, scaled_scores, softmax_over
from autograder.exercises.attention.properties import dtype_kept, weights_of_a_pair
from autograder.program import Program, call
from course_lib import attention
from course_lib.attention import softmax

FAR = 1000.0  # a score at which exp overflows: it has no float64 above 709


def projected(draw: Draw, n: int, d_model: int, d_k: int, d_v: int) -> Program:
    """Draw tokens and three independent matrices that keep their scale."""
    keep = 1 / math.sqrt(d_model)
    return call(
        draw.normal(n, d_model),
        draw.normal(d_model, d_k, scale=keep),
        draw.normal(d_model, d_k, scale=keep),
        draw.normal(d_model, d_v, scale=keep),
    )


def sizes_differ(draw: Draw) -> Program:
    """Draw the length and the three widths so that all differ."""
    return projected(draw, *draw.sizes(4))


def large_scores(draw: Draw) -> Program:
    """Stretch the tokens until the largest score is a thousand."""
    x, w_q, w_k, w_v = sizes_differ(draw).steps[0].args
    scores = scaled_scores(x @ w_q, x @ w_k)
    largest = np.abs(scores).max()
    w_q = w_q if scores.max() == largest else -w_q
    return call(x * math.sqrt(FAR / largest), w_q, w_k, w_v)


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=attention.self_attention,
    returns=("output", "weights"),
    properties=[dtype_kept, weights_of_a_pair],
    forbids=library_calls.ATTENTION,
    cases=[
        Case("5 tokens of width 6", lambda draw: projected(draw, 5, 6, 3, 4)),
        Case("all sizes differ", sizes_differ),
        Case("other sizes", lambda draw: projected(draw, *draw.sizes(4, high=12)), hidden=True),
        Case("square matrices", lambda draw: projected(draw, 4, 5, 5, 5), hidden=True),
        Case("one token", lambda draw: projected(draw, 1, *draw.sizes(3)), hidden=True),
        Case("scores near a thousand", large_scores, hidden=True),
        Case("float32", sizes_differ, hidden=True, dtype="float32"),
    ],
)


@exercise.misconception("""
    Your output has the width of the tokens: the average runs over the tokens themselves, and w_v is never used. The
    weights say where to look; w_v says what to take from there.
""")
def values_not_projected(x, w_q, w_k, w_v):
    return attend(scaled_scores(x @ w_q, x @ w_k), x)


@exercise.misconception("""
    Your scores are symmetric: token i rates j as j rates i, because keys and queries both come from w_q. Change w_k:
    nothing moves. With a matrix of its own, a token can seek one thing and offer another.
""")
def keys_from_the_query_matrix(x, w_q, w_k, w_v):
    return attend(scaled_scores(x @ w_q, x @ w_q), x @ w_v)


@exercise.misconception("""
    Your scores are symmetric: queries and keys both come from w_k. Change w_q: nothing moves. Which of the three
    matrices makes the queries?
""")
def queries_from_the_key_matrix(x, w_q, w_k, w_v):
    return attend(scaled_scores(x @ w_k, x @ w_k), x @ w_v)


@exercise.misconception("""
    Queries and keys have changed places: your result is the right one for w_q and w_k exchanged. Row i of the scores
    should hold what token i asks, as a query, of all the others.
""")
def queries_and_keys_exchanged(x, w_q, w_k, w_v):
    return attend(scaled_scores(x @ w_k, x @ w_q), x @ w_v)


@exercise.misconception("""
    Neither w_q nor w_k plays a part: the tokens are compared as they are, so each mostly finds itself. Project them
    first.
""")
def tokens_compared_unprojected(x, w_q, w_k, w_v):
    return attend(scaled_scores(x, x), x @ w_v)


@exercise.misconception("""
    You multiply by the transposed matrices. Here tokens are rows and a matrix is (width in, width out), so `x @ w`
    does it. (A layer of PyTorch stores its weight the other way round; if you had that in mind, that is why.)
""")
def matrices_transposed(x, w_q, w_k, w_v):
    return attend(scaled_scores(x @ w_q.T, x @ w_k.T), x @ w_v.T)


@exercise.misconception("""
    Your weights are off because the scale comes from the width of the tokens. A score sums d_k products, those of a
    projected query with a projected key. After the projection, which axis has that length?
""")
def scale_from_model_width(x, w_q, w_k, w_v):
    return attend(dot_products(x @ w_q, x @ w_k) / math.sqrt(x.shape[-1]), x @ w_v)


@exercise.misconception("""
    The scale comes from the width of the values. They play no part in a score: which width do queries and keys
    share?
""")
def scale_from_value_width(x, w_q, w_k, w_v):
    return attend(dot_products(x @ w_q, x @ w_k) / math.sqrt(w_v.shape[-1]), x @ w_v)


@exercise.misconception("""
    Your weights are sharper than expected: the scores of the projected queries and keys were never divided by √d_k.
""")
def no_scale(x, w_q, w_k, w_v):
    return attend(dot_products(x @ w_q, x @ w_k), x @ w_v)


@exercise.misconception("""
    Your weights are flatter than expected: the scores were divided by d_k, not by its root.
""")
def divided_by_width(x, w_q, w_k, w_v):
    return attend(dot_products(x @ w_q, x @ w_k) / w_q.shape[-1], x @ w_v)


@exercise.misconception("""
    Each column of your weights sums to 1, but each row should. The table is square here, so the shape cannot warn
    you: print both sums. Which axis runs over the keys?
""")
def softmax_over_queries(x, w_q, w_k, w_v):
    weights = softmax_over(-2, scaled_scores(x @ w_q, x @ w_k))
    return weights @ (x @ w_v), weights


@exercise.misconception("""
    Your output takes its shares from the columns of the weights. The table is square here, so nothing complains. In
    `weights @ values`, what does row i of the product average?
""")
def weights_transposed(x, w_q, w_k, w_v):
    weights = softmax(scaled_scores(x @ w_q, x @ w_k))
    return weights.T @ (x @ w_v), weights


@exercise.misconception("""
    Your result is the output alone. Return the weights as well, as a pair `(output, weights)`: the plots of this
    chapter need them. (Many libraries return only the output, as they never keep the weights.)
""")
def output_alone(x, w_q, w_k, w_v):
    return attention.self_attention(x, w_q, w_k, w_v)[0]


@exercise.misconception("""
    The two results are in the other order: return the output first, then the weights.
""")
def weights_before_output(x, w_q, w_k, w_v):
    return attention.self_attention(x, w_q, w_k, w_v)[::-1]


@exercise.misconception("""
    Your weights are right until scores reach the hundreds; then `exp` overflows. Subtract each row's maximum first:
    that changes no weight.
""")
def no_maximum_subtracted(x, w_q, w_k, w_v):
    exponentials = np.exp(scaled_scores(x @ w_q, x @ w_k))
    weights = exponentials / exponentials.sum(-1, keepdims=True)
    return weights @ (x @ w_v), weights


@exercise.misconception("""
    Your results are float64 although the inputs are float32: `np.sqrt(d_k)` is a float64 number of NumPy, and
    dividing by it widens the whole array. `math.sqrt(d_k)` or `d_k ** 0.5` gives a Python number, which does not.
""")
def widened_by_the_root(x, w_q, w_k, w_v):
    return attend(dot_products(x @ w_q, x @ w_k) / np.sqrt(w_q.shape[-1]), x @ w_v)


@exercise.alternative
def merged_query_and_key_matrices(x, w_q, w_k, w_v):
    return attend(x @ (w_q @ w_k.T) @ x.T / math.sqrt(w_q.shape[-1]), x @ w_v)


@exercise.alternative
def values_projected_after_the_average(x, w_q, w_k, w_v):
    weights = softmax(scaled_scores(x @ w_q, x @ w_k))
    return (weights @ x) @ w_v, weights


@exercise.alternative
def one_fused_product(x, w_q, w_k, w_v):
    d_k = w_q.shape[-1]
    query, key, value = np.split(x @ np.concatenate([w_q, w_k, w_v], axis=1), [d_k, 2 * d_k], axis=1)
    return attend(scaled_scores(query, key), value)


@exercise.alternative
def from_the_whole_operation(x, w_q, w_k, w_v):
    return attention.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@exercise.alternative
def by_einsum_and_tensordot(x, w_q, w_k, w_v):
    query, key = np.einsum("nd,dk->nk", x, w_q), np.tensordot(x, w_k, axes=([1], [0]))
    return attend(np.inner(query, key) / math.sqrt(query.shape[1]), np.dot(x, w_v))


@exercise.alternative
def one_token_at_a_time(x, w_q, w_k, w_v):
    keys, values = x @ w_k, x @ w_v
    pairs = [attend((token @ w_q) @ keys.T / math.sqrt(w_q.shape[-1]), values) for token in x]
    return np.stack([output for output, _ in pairs]), np.stack([weights for _, weights in pairs])


@exercise.alternative
def as_a_list_of_two(x, w_q, w_k, w_v):
    return list(attention.self_attention(x, w_q, w_k, w_v))
