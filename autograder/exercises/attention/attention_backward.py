"""Check `attention_backward`: the gradient of attention, by hand."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises import library_calls
from autograder.exercises.attention import CHAPTER
from autograder.exercises.attention.parts import dot_products, scaled_scores
from autograder.exercises.attention.properties import dtype_kept
from autograder.exercises.attention.whole_attention import inputs
from autograder.program import Program, call
from course_lib import attention
from course_lib.attention import softmax

Array = np.ndarray
SATURATING = 2.0  # scale of queries and keys at which most rows have a clear winner, but no weight is 0
CANCELLATION = {"float64": 1e-7}  # a clear winner loses digits in 1 - weight, in any form of the formula


def with_gradient(draw: Draw, *leading: int, scale: float = 1.0) -> Program:
    """Draw inputs and the gradient of a loss with respect to the output."""
    query, key, value = inputs(draw, *leading, scale=scale)
    return call(query, key, value, draw.normal(*query.shape[:-1], value.shape[-1]))


def one_entry(draw: Draw) -> Program:
    """Let the loss be a single entry of the output."""
    query, key, value = inputs(draw)
    gradient = np.zeros((len(query), value.shape[-1]))
    gradient[draw.integer(0, len(query) - 1), draw.integer(0, value.shape[-1] - 1)] = 1
    return call(query, key, value, draw.array(gradient))


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=attention.attention_backward,
    returns=("grad_query", "grad_key", "grad_value"),
    properties=[dtype_kept],
    tolerance=CANCELLATION,
    forbids=library_calls.AUTOGRAD,
    forbids_because=library_calls.INSTEAD_OF_AUTOGRAD,
    cases=[
        Case("all sizes differ", with_gradient),
        Case("the loss is one entry of the output", one_entry),
        Case(
            "one query", lambda draw: call(draw.normal(1, 3), draw.normal(5, 3), draw.normal(5, 4), draw.normal(1, 4))
        ),
        Case("other sizes", with_gradient, hidden=True),
        Case("a batch of several heads", lambda draw: with_gradient(draw, 2, 3), hidden=True),
        Case("a cube", lambda draw: call(*(draw.normal(4, 4, 4) for _ in range(4))), hidden=True),
        Case("weights near 0 and 1", lambda draw: with_gradient(draw, scale=SATURATING), hidden=True),
        Case("float32", with_gradient, hidden=True, dtype="float32"),
    ],
)


def _turn(array: Array) -> Array:
    return np.swapaxes(array, -1, -2)


def _through_softmax(weights: Array, grad_weights: Array) -> Array:
    return weights * (grad_weights - (weights * grad_weights).sum(-1, keepdims=True))


def _forward(query: Array, key: Array, value: Array, grad_output: Array) -> tuple[Array, Array]:
    return softmax(scaled_scores(query, key)), grad_output @ _turn(value)


def _collect(query: Array, key: Array, weights: Array, grad_scores: Array, grad_output: Array):
    root = math.sqrt(query.shape[-1])
    return grad_scores @ key / root, _turn(grad_scores) @ query / root, _turn(weights) @ grad_output


@exercise.misconception("""
    grad_value is right, and grad_query and grad_key are √d_k times too large: the scores were divided by √d_k on the
    way forward, so what flows back through that division is divided too.
""")
def no_scale_on_the_way_back(query, key, value, grad_output):
    grad_query, grad_key, grad_value = attention.attention_backward(query, key, value, grad_output)
    root = math.sqrt(query.shape[-1])
    return grad_query * root, grad_key * root, grad_value


@exercise.misconception("""
    grad_query and grad_key are divided by √d_k twice. It stands once in the scores, so it comes back once: either in
    the gradient of the scores or in the last products, not in both.
""")
def scale_twice_on_the_way_back(query, key, value, grad_output):
    grad_query, grad_key, grad_value = attention.attention_backward(query, key, value, grad_output)
    root = math.sqrt(query.shape[-1])
    return grad_query / root, grad_key / root, grad_value


@exercise.misconception("""
    grad_value is too small by √d_k. The values never meet that division: they are averaged by finished weights.
""")
def scale_in_grad_value(query, key, value, grad_output):
    grad_query, grad_key, grad_value = attention.attention_backward(query, key, value, grad_output)
    return grad_query, grad_key, grad_value / math.sqrt(query.shape[-1])


@exercise.misconception("""
    All three gradients belong to weights without the division by √d_k: it is missing on the way forward, where you
    compute the weights again.
""")
def no_scale_on_the_way_forward(query, key, value, grad_output):
    weights, grad_weights = softmax(dot_products(query, key)), grad_output @ _turn(value)
    return _collect(query, key, weights, _through_softmax(weights, grad_weights), grad_output)


@exercise.misconception("""
    There is no softmax on your way back: the gradient of the weights goes on as if it were that of the scores. Look
    at `softmax_jacobian`: which matrix stands between the two?
""")
def softmax_skipped(query, key, value, grad_output):
    weights, grad_weights = _forward(query, key, value, grad_output)
    return _collect(query, key, weights, grad_weights, grad_output)


@exercise.misconception("""
    You use only the diagonal of the softmax's Jacobian, p(1 - p), as for a sigmoid. A score also moves the other
    weights of its row. Check: your gradients of the scores should sum to 0 in every row.
""")
def only_the_diagonal_of_the_jacobian(query, key, value, grad_output):
    weights, grad_weights = _forward(query, key, value, grad_output)
    return _collect(query, key, weights, weights * (1 - weights) * grad_weights, grad_output)


@exercise.misconception("""
    You multiply by the weights, but do not subtract what the whole row shares. Adding the same amount to all scores
    of a row changes nothing, so the gradients of the scores must sum to 0 in every row. Do yours?
""")
def row_term_forgotten(query, key, value, grad_output):
    weights, grad_weights = _forward(query, key, value, grad_output)
    return _collect(query, key, weights, weights * grad_weights, grad_output)


@exercise.misconception("""
    From each row you subtract the plain mean of the gradients of the weights. The Jacobian asks for the mean under
    the weights of that row: a key that gets no attention has no say in it.
""")
def plain_mean_subtracted(query, key, value, grad_output):
    weights, grad_weights = _forward(query, key, value, grad_output)
    grad_scores = weights * (grad_weights - grad_weights.mean(-1, keepdims=True))
    return _collect(query, key, weights, grad_scores, grad_output)


@exercise.misconception("""
    The row's weighted mean is subtracted, but the factor in front is missing: each gradient of a score is also
    multiplied by its own weight. Multiply the Jacobian with a vector on paper.
""")
def factor_of_the_weight_forgotten(query, key, value, grad_output):
    weights, grad_weights = _forward(query, key, value, grad_output)
    grad_scores = grad_weights - (weights * grad_weights).sum(-1, keepdims=True)
    return _collect(query, key, weights, grad_scores, grad_output)


@exercise.misconception("""
    Your sum inside the softmax's gradient runs over the queries. The softmax ran along the keys of one row, so its
    gradient must as well.
""")
def sum_over_queries(query, key, value, grad_output):
    weights, grad_weights = _forward(query, key, value, grad_output)
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(-2, keepdims=True))
    return _collect(query, key, weights, grad_scores, grad_output)


@exercise.misconception("""
    The weights are not transposed in grad_value. A value is used by many queries, so its gradient gathers down a
    column of the weights. Compare shapes: (keys, d_v) must come from (queries, keys) and (queries, d_v).
""")
def grad_value_from_rows(query, key, value, grad_output):
    grad_query, grad_key, _ = attention.attention_backward(query, key, value, grad_output)
    return grad_query, grad_key, softmax(scaled_scores(query, key)) @ grad_output


@exercise.misconception("""
    The gradient of the scores is not transposed in grad_key. A key is asked by many queries, so its gradient gathers
    down a column. Compare shapes: (keys, d_k) must come from (queries, keys) and (queries, d_k).
""")
def grad_key_from_rows(query, key, value, grad_output):
    weights, grad_weights = _forward(query, key, value, grad_output)
    grad_scores = _through_softmax(weights, grad_weights)
    root = math.sqrt(query.shape[-1])
    return grad_scores @ key / root, grad_scores @ query / root, _turn(weights) @ grad_output


@exercise.misconception("""
    grad_query and grad_key have changed places: return them in the order of the arguments, query, key, value.
""")
def query_and_key_exchanged(query, key, value, grad_output):
    grad_query, grad_key, grad_value = attention.attention_backward(query, key, value, grad_output)
    return grad_key, grad_query, grad_value


@exercise.misconception("""
    You return the gradients in the order in which they are found, the value's first. Return them in the order of the
    arguments: query, key, value.
""")
def value_first(query, key, value, grad_output):
    grad_query, grad_key, grad_value = attention.attention_backward(query, key, value, grad_output)
    return grad_value, grad_query, grad_key


@exercise.misconception("""
    All your gradients have the opposite sign. A gradient points uphill; the minus belongs to the training step, not
    to the chain rule.
""")
def opposite_sign(query, key, value, grad_output):
    return tuple(-gradient for gradient in attention.attention_backward(query, key, value, grad_output))


@exercise.misconception("""
    Your gradients do not depend on grad_output: they are those of the sum of all outputs, where it is all ones. The
    chain rule starts with whatever the loss hands in.
""")
def output_gradient_ignored(query, key, value, grad_output):
    return attention.attention_backward(query, key, value, np.ones_like(grad_output))


@exercise.misconception("""
    One sequence works, a batch does not: `.T` turns all axes around, batch and heads too. Swap only the last two.
""")
def every_axis_transposed(query, key, value, grad_output):
    root = math.sqrt(query.shape[-1])
    weights = softmax(query @ key.T / root)
    grad_scores = _through_softmax(weights, grad_output @ value.T)
    return grad_scores @ key / root, grad_scores.T @ query / root, weights.T @ grad_output


@exercise.misconception("""
    Your gradients are float64 although the inputs are float32: `np.sqrt(d_k)` is a float64 number of NumPy, and
    dividing by it widens the whole array. `math.sqrt(d_k)` or `d_k ** 0.5` gives a Python number, which does not.
""")
def widened_by_the_root(query, key, value, grad_output):
    root = np.sqrt(query.shape[-1])
    weights = softmax(dot_products(query, key) / root)
    grad_scores = _through_softmax(weights, grad_output @ _turn(value)) / root
    return grad_scores @ key, _turn(grad_scores) @ query, _turn(weights) @ grad_output


@exercise.alternative
def row_term_from_the_output(query, key, value, grad_output):
    weights, grad_weights = _forward(query, key, value, grad_output)
    row_term = (grad_output * (weights @ value)).sum(-1, keepdims=True)
    return _collect(query, key, weights, weights * (grad_weights - row_term), grad_output)


@exercise.alternative
def by_the_full_jacobian(query, key, value, grad_output):
    weights, grad_weights = _forward(query, key, value, grad_output)
    grad_scores = np.einsum("...ij,...i->...j", attention.softmax_jacobian(weights), grad_weights)
    return _collect(query, key, weights, grad_scores, grad_output)


@exercise.alternative
def by_einsum(query, key, value, grad_output):
    scale = query.shape[-1] ** -0.5
    weights = softmax(np.einsum("...id,...jd->...ij", query, key) * scale)
    grad_weights = np.einsum("...iv,...jv->...ij", grad_output, value)
    grad_scores = _through_softmax(weights, grad_weights) * scale
    return (
        np.einsum("...ij,...jd->...id", grad_scores, key),
        np.einsum("...ij,...id->...jd", grad_scores, query),
        np.einsum("...ij,...iv->...jv", weights, grad_output),
    )


@exercise.alternative
def one_query_at_a_time(query, key, value, grad_output):
    grad_query, grad_key, grad_value = np.empty_like(query), np.zeros_like(key), np.zeros_like(value)
    for i in range(query.shape[-2]):
        rows = slice(i, i + 1)
        asked, gradient = query[..., rows, :], grad_output[..., rows, :]
        weights, grad_weights = _forward(asked, key, value, gradient)
        grad_scores = _through_softmax(weights, grad_weights)
        part = _collect(asked, key, weights, grad_scores, gradient)
        grad_query[..., rows, :] = part[0]
        grad_key += part[1]
        grad_value += part[2]
    return grad_query, grad_key, grad_value


@exercise.alternative
def as_a_list_of_three(query, key, value, grad_output):
    return list(attention.attention_backward(query, key, value, grad_output))
