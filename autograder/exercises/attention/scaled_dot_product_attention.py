"""Check `scaled_dot_product_attention`: the whole operation, with a mask."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises import library_calls
from autograder.exercises.attention import CHAPTER
from autograder.exercises.attention.parts import attend, dot_products, hide, scaled_scores, softmax_over
from autograder.exercises.attention.properties import dtype_kept, weights_of_a_pair
from autograder.exercises.attention.whole_attention import (
    ACCEPTED_FORMS,
    HIDDEN_CASES,
    inputs,
    masked,
    one_query_sees_nothing,
)
from autograder.program import Program, call
from course_lib import attention
from course_lib.attention import softmax


def more_queries_than_keys(draw: Draw) -> Program:
    """Draw sizes at which a softmax over the wrong axis has the right shape."""
    return call(draw.normal(7, 3), draw.normal(5, 3), draw.normal(5, 4))


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=attention.scaled_dot_product_attention,
    returns=("output", "weights"),
    properties=[dtype_kept, weights_of_a_pair],
    forbids=library_calls.ATTENTION,
    cases=[
        Case("7 queries over 5 keys", more_queries_than_keys),
        Case("all sizes differ", lambda draw: call(*inputs(draw))),
        Case("some keys hidden", masked),
        *HIDDEN_CASES,
        Case("one query sees nothing", one_query_sees_nothing, hidden=True),
        Case("a cube", lambda draw: call(*(draw.normal(4, 4, 4) for _ in range(3))), hidden=True),
    ],
)


@exercise.misconception("""
    Each column of your weights sums to 1, but each row should. A row belongs to one query: it shares out that
    query's attention over all keys. Your softmax lets the queries compete for a key instead. Which axis of the
    (query, key) table runs over the keys?
""")
def softmax_over_queries(query, key, value, mask=None):
    weights = softmax_over(-2, hide(scaled_scores(query, key), mask))
    return weights @ value, weights


@exercise.misconception("""
    All your weights together sum to 1, but each row should do so by itself. Which axis must the softmax's sum
    run over, and does it keep that axis (`keepdims`)?
""")
def softmax_over_everything(query, key, value, mask=None):
    scores = hide(scaled_scores(query, key), mask)
    exponentials = np.exp(scores - scores.max())
    weights = exponentials / exponentials.sum()
    return weights @ value, weights


@exercise.misconception("""
    Your weights are sharper than expected: they are those of scores that were never divided by √d_k. Print the
    standard deviation of your scores for d_k = 4 and d_k = 64 to see what the division is for.
""")
def no_scale(query, key, value, mask=None):
    return attend(hide(dot_products(query, key), mask), value)


@exercise.misconception("""
    Your weights are flatter than expected: the scores were divided by d_k, not by its square root. A sum of d_k
    independent terms grows like √d_k, so that is what brings it back to 1.
""")
def divided_by_width(query, key, value, mask=None):
    return attend(hide(dot_products(query, key) / query.shape[-1], mask), value)


@exercise.misconception("""
    Your scores grow with the width: they were multiplied by √d_k where they should be divided. If you prepared a
    factor d_k ** -0.5, multiply by it.
""")
def multiplied_by_root(query, key, value, mask=None):
    return attend(hide(dot_products(query, key) * math.sqrt(query.shape[-1]), mask), value)


@exercise.misconception("""
    The scale comes from the width of the values here. A score sums over the d_k features that queries and keys
    share; the values, and their width d_v, play no part in it.
""")
def scale_from_value_width(query, key, value, mask=None):
    return attend(hide(dot_products(query, key) / math.sqrt(value.shape[-1]), mask), value)


@exercise.misconception("""
    The scale comes from the number of keys. It should come from d_k, the number of features: adding a token must
    not change the score of two others.
""")
def scale_from_number_of_keys(query, key, value, mask=None):
    return attend(hide(dot_products(query, key) / math.sqrt(key.shape[-2]), mask), value)


@exercise.misconception("""
    One sequence works, but in a batch the scale comes from axis 1, which then holds heads or queries. Count the axis
    from the end: the features are always the last one.
""")
def scale_from_axis_one(query, key, value, mask=None):
    return attend(hide(dot_products(query, key) / math.sqrt(query.shape[1]), mask), value)


@exercise.misconception("""
    Your rows sum to 1/√d_k: the division comes after the softmax. It should act on the scores, before it; the
    weights are shares and must stay so.
""")
def scale_after_softmax(query, key, value, mask=None):
    weights = softmax(hide(dot_products(query, key), mask)) / math.sqrt(query.shape[-1])
    return weights @ value, weights


@exercise.misconception("""
    There is no softmax between scores and output: your weights are the scores themselves, some negative. Turn each
    row of scores into shares that sum to 1 first.
""")
def no_softmax(query, key, value, mask=None):
    weights = scaled_scores(query, key)
    weights = weights if mask is None else np.where(mask, 0, weights)
    return weights @ value, weights


@exercise.misconception("""
    Each of your queries takes only the single best key. Attention is soft: every visible key gets a share, and
    the best one just gets the largest.
""")
def hard_argmax(query, key, value, mask=None):
    scores = hide(dot_products(query, key), mask)
    weights = (scores == scores.max(-1, keepdims=True)).astype(scores.dtype)
    return weights @ value, weights


@exercise.misconception("""
    Your weights are right until scores reach the hundreds; then `exp` overflows. Subtract each row's maximum
    first: the same amount from every score of a row changes no weight.
""")
def no_maximum_subtracted(query, key, value, mask=None):
    exponentials = np.exp(hide(scaled_scores(query, key), mask))
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
    scores = scaled_scores(query, key)
    weights = softmax(scores if mask is None else np.where(mask, 0, scores))
    return weights @ value, weights


@exercise.misconception("""
    You add the mask to the scores, so a hidden key gains 1. A boolean mask marks places; a mask that is added
    holds 0 and -inf. Use `np.where` to put -inf where the mask is True.
""")
def mask_added(query, key, value, mask=None):
    scores = scaled_scores(query, key)
    weights = softmax(scores if mask is None else scores + mask)
    return weights @ value, weights


@exercise.misconception("""
    A query that sees nothing gets equal weights over keys that it must not see: a large negative number stands for
    -inf, and when a whole row has it the softmax shares evenly. In this course such a row has weights 0.
""")
def uniform_when_all_is_hidden(query, key, value, mask=None):
    scores = scaled_scores(query, key)
    weights = softmax(scores if mask is None else np.where(mask, -1e9, scores))
    return weights @ value, weights


@exercise.misconception("""
    A query that sees nothing becomes NaN: its row is -inf everywhere, and -inf minus -inf has no value. Decide what
    such a row should give (here: weights 0) and handle it before the division.
""")
def nan_when_all_is_hidden(query, key, value, mask=None):
    scores = hide(scaled_scores(query, key), mask)
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
    return attend(hide(query @ key.T / math.sqrt(query.shape[-1]), mask), value)


@exercise.misconception("""
    One sequence works, but with a batch the softmax runs over axis 1, which then holds heads or queries. Count the
    axis from the end: the keys are always the last one.
""")
def softmax_over_axis_one(query, key, value, mask=None):
    weights = softmax_over(1, hide(scaled_scores(query, key), mask))
    return weights @ value, weights


@exercise.misconception("""
    Your results are float64 although the inputs are float32: a float64 number crept in and widened everything.
    Return the inputs' dtype; half the memory of a model depends on it.
""")
def result_in_float64(query, key, value, mask=None):
    query, key, value = (array.astype(np.float64) for array in (query, key, value))
    return attention.scaled_dot_product_attention(query, key, value, mask)


@exercise.misconception("""
    Your output takes its shares from the columns of the weights. A row belongs to one query: in `weights @ value`,
    what does row i of the product average?
""")
def weights_transposed(query, key, value, mask=None):
    weights = softmax(hide(scaled_scores(query, key), mask))
    return np.swapaxes(weights, -1, -2) @ value, weights


@exercise.misconception("""
    Your result is the output alone. Return the weights as well, as a pair `(output, weights)`: the plots of this
    chapter need them. (Many libraries return only the output, as they never keep the weights.)
""")
def output_alone(query, key, value, mask=None):
    return attention.scaled_dot_product_attention(query, key, value, mask)[0]


@exercise.misconception("""
    Your results are float64 although the inputs are float32: `np.sqrt(d_k)` is a float64 number of NumPy, and
    dividing by it widens the whole array. `math.sqrt(d_k)` or `d_k ** 0.5` gives a Python number, which does not.
""")
def widened_by_the_root(query, key, value, mask=None):
    return attend(hide(dot_products(query, key) / np.sqrt(query.shape[-1]), mask), value)


for form in ACCEPTED_FORMS:
    exercise.alternative(form)
