"""Check `attention_with_temperature`: the same scores, sharper or more even."""

import math

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.attention import CHAPTER
from autograder.exercises.attention.parts import attend, dot_products, scaled_scores, softmax_over
from autograder.exercises.attention.properties import dtype_kept, weights_of_a_pair
from autograder.exercises.attention.whole_attention import inputs, inputs_with_large_scores
from autograder.program import Program, call
from course_lib import attention
from course_lib.attention import softmax


def between(draw: Draw, low: float, high: float, *leading: int) -> Program:
    """Draw inputs, and a temperature between two."""
    return call(*inputs(draw, *leading), draw.number(low, high))


def large_scores(draw: Draw) -> Program:
    """Bring scores near a thousand."""
    return call(*inputs_with_large_scores(draw), temperature=draw.number(0.4, 0.7))


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=attention.attention_with_temperature,
    returns=("output", "weights"),
    properties=[dtype_kept, weights_of_a_pair],
    forbids=["torch.nn.functional.scaled_dot_product_attention"],
    cases=[
        Case("a low temperature", lambda draw: between(draw, 0.3, 0.6)),
        Case("a high temperature", lambda draw: between(draw, 2.0, 5.0)),
        Case("temperature 0", lambda draw: call(*inputs(draw), 0.0)),
        Case("temperature 1", lambda draw: call(*inputs(draw), 1.0), hidden=True),
        Case("a temperature near 0", lambda draw: between(draw, 0.02, 0.05), hidden=True),
        Case("a very high temperature", lambda draw: between(draw, 1e3, 1e4), hidden=True),
        Case("a negative temperature", lambda draw: between(draw, -2.0, -0.3), hidden=True),
        Case("scores near a thousand", large_scores, hidden=True),
        Case("a batch of several heads", lambda draw: between(draw, 0.3, 3.0, 2, 3), hidden=True),
        Case("float32", lambda draw: between(draw, 0.5, 2.0), hidden=True, dtype="float32"),
    ],
)


def _refuse(temperature: float) -> None:
    if temperature <= 0:
        raise ValueError("temperature must be above 0")


@exercise.misconception("""
    Temperature works the wrong way round: low makes your weights more even. You multiply the scores by it (or raise
    the weights to that power, which is the same). Low should be sharp: which operation makes small numbers count
    more?
""")
def multiplied_by_temperature(query, key, value, temperature):
    _refuse(temperature)
    return attend(scaled_scores(query, key) * temperature, value)


@exercise.misconception("""
    You divide the weights by the temperature, so your rows sum to 1/T. Temperature should act on the scores, before
    the softmax; the weights are shares and must stay so.
""")
def weights_divided(query, key, value, temperature):
    _refuse(temperature)
    weights = softmax(scaled_scores(query, key)) / temperature
    return weights @ value, weights


@exercise.misconception("""
    Your weights are those of the temperature √T: T slipped under the root, next to d_k. Compare your result at T = 4
    with the right one at T = 2.
""")
def temperature_under_the_root(query, key, value, temperature):
    _refuse(temperature)
    return attend(dot_products(query, key) / math.sqrt(query.shape[-1] * temperature), value)


@exercise.misconception("""
    The temperature stands in place of √d_k in your code, so T = 1 does not give the attention you already wrote. It
    comes on top of that division.
""")
def temperature_instead_of_root(query, key, value, temperature):
    _refuse(temperature)
    return attend(dot_products(query, key) / temperature, value)


@exercise.misconception("""
    Your temperature has no effect. Does it reach the scores, and do you keep the result of the division?
""")
def temperature_ignored(query, key, value, temperature):
    _refuse(temperature)
    return attend(scaled_scores(query, key), value)


@exercise.misconception("""
    Your scores are divided by d_k · T, not by √d_k · T: a root is missing. At T = 1 the result should be that of the
    usual attention.
""")
def divided_by_width(query, key, value, temperature):
    _refuse(temperature)
    return attend(dot_products(query, key) / (query.shape[-1] * temperature), value)


@exercise.misconception("""
    You divide twice by the temperature: the result belongs to T². Perhaps both query and key were divided, or the
    scores once more.
""")
def divided_twice(query, key, value, temperature):
    _refuse(temperature)
    return attend(scaled_scores(query, key) / temperature**2, value)


@exercise.misconception("""
    A softmax runs over your weights a second time: they were shares already, and come out nearly even. Temperature
    divides the scores, before the one softmax.
""")
def softmax_taken_twice(query, key, value, temperature):
    _refuse(temperature)
    return attend(softmax(scaled_scores(query, key)) / temperature, value)


@exercise.misconception("""
    Each column of your weights sums to 1, but each row should: your softmax lets the queries compete for a key.
""")
def softmax_over_queries(query, key, value, temperature):
    _refuse(temperature)
    weights = softmax_over(-2, scaled_scores(query, key) / temperature)
    return weights @ value, weights


@exercise.misconception("""
    A temperature that is not above 0 has no meaning here: 0 divides by zero, and below 0 the worst key wins. Say so
    with a `ValueError` before you compute anything.
""")
def nothing_refused(query, key, value, temperature):
    return attend(scaled_scores(query, key) / np.float64(temperature), value)


@exercise.misconception("""
    You refuse temperatures below 0, but let 0 through, which divides by zero. Check the edge of your comparison.
""")
def zero_let_through(query, key, value, temperature):
    if temperature < 0:
        raise ValueError("temperature must be above 0")
    return attend(scaled_scores(query, key) / np.float64(temperature), value)


@exercise.misconception("""
    You refuse 0 but not what lies below it. With a negative temperature the scores change sign, and the worst key
    gets the largest weight.
""")
def negative_let_through(query, key, value, temperature):
    if temperature == 0:
        raise ValueError("temperature must be above 0")
    return attend(scaled_scores(query, key) / temperature, value)


@exercise.misconception("""
    At temperature 0 you return the best key alone. That is the limit, and samplers of text often take 0 to mean it;
    here 0 is refused with a `ValueError`, so that a slip cannot pass for a choice.
""")
def zero_means_the_best_key(query, key, value, temperature):
    if temperature == 0:
        scores = scaled_scores(query, key)
        weights = (scores == scores.max(-1, keepdims=True)).astype(scores.dtype)
        return weights @ value, weights
    _refuse(temperature)
    return attend(scaled_scores(query, key) / temperature, value)


@exercise.misconception("""
    You guard the temperature with `assert`. Python drops every assertion when it runs with -O, and a caller expects
    a `ValueError` for a bad value. Raise one.
""")
def refused_by_assertion(query, key, value, temperature):
    assert temperature > 0
    return attend(scaled_scores(query, key) / temperature, value)


@exercise.misconception("""
    Your result is the output alone. Return the weights as well, as a pair `(output, weights)`.
""")
def output_alone(query, key, value, temperature):
    return attention.attention_with_temperature(query, key, value, temperature)[0]


@exercise.misconception("""
    Your weights are right until scores reach the hundreds; then `exp` overflows, and a low temperature brings that
    nearer. Subtract each row's maximum first: that changes no weight.
""")
def no_maximum_subtracted(query, key, value, temperature):
    _refuse(temperature)
    exponentials = np.exp(scaled_scores(query, key) / temperature)
    weights = exponentials / exponentials.sum(-1, keepdims=True)
    return weights @ value, weights


@exercise.misconception("""
    Your results are float64 although the inputs are float32: `np.sqrt(d_k)` is a float64 number of NumPy, and
    dividing by it widens the whole array. `math.sqrt(d_k)` or `d_k ** 0.5` gives a Python number, which does not.
""")
def widened_by_the_root(query, key, value, temperature):
    _refuse(temperature)
    return attend(dot_products(query, key) / (np.sqrt(query.shape[-1]) * temperature), value)


@exercise.alternative
def scores_divided(query, key, value, temperature):
    _refuse(temperature)
    return attend(scaled_scores(query, key) / temperature, value)


@exercise.alternative
def query_divided_first(query, key, value, temperature):
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}")
    return attend(scaled_scores(query / temperature, key), value)


@exercise.alternative
def from_the_whole_operation(query, key, value, temperature):
    _refuse(temperature)
    return attention.scaled_dot_product_attention(query / temperature, key, value)


@exercise.alternative
def weights_to_a_power_renormalized(query, key, value, temperature):
    _refuse(temperature)
    powers = softmax(scaled_scores(query, key)) ** (1 / temperature)
    weights = powers / powers.sum(-1, keepdims=True)
    return weights @ value, weights


@exercise.alternative
def by_einsum(query, key, value, temperature):
    _refuse(temperature)
    scores = np.einsum("...id,...jd->...ij", query, key) * query.shape[-1] ** -0.5
    weights = softmax(scores / temperature)
    return np.einsum("...ij,...jd->...id", weights, value), weights


@exercise.alternative
def refused_by_a_subclass(query, key, value, temperature):
    class TemperatureError(ValueError):
        pass

    if temperature <= 0:
        raise TemperatureError
    return attend(scaled_scores(query, key) / temperature, value)


@exercise.alternative
def as_a_list_of_two(query, key, value, temperature):
    return list(attention.attention_with_temperature(query, key, value, temperature))
