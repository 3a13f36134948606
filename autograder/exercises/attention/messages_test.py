"""What a learner reads when an answer of chapter 01 is wrong in a way that no known belief explains."""

import math

import numpy as np
import pytest

from autograder import evaluate
from course_lib import attention


def a_third_of_the_weights(scores):
    exponentials = np.exp(scores)
    return exponentials / exponentials.sum(-1, keepdims=True) / 3


def shifted_weights(query, key, value, mask=None):
    weights = attention.softmax(attention.attention_scores(query, key)) - 1
    return weights @ value, weights


def jacobian_of_something_else(weights):
    return np.outer(weights, weights) + 0.5


def simulated(d_k, scaled):
    draws = np.random.default_rng(99).standard_normal((2, 4_000, d_k))
    return float(draws.prod(0).sum(-1).std()) / (math.sqrt(d_k) if scaled else 1)


def widened_in_its_own_way(query, key):
    scores = np.einsum("...id,...jd->...ij", query, key) * np.float64(1.0)
    return scores / math.sqrt(query.shape[-1])


@pytest.mark.parametrize(
    ("exercise", "solution", "sentence"),
    [
        ("softmax", a_third_of_the_weights, "sums to 0.333, but every row should sum to 1"),
        ("scaled_dot_product_attention", shifted_weights, "some weights are negative"),
        ("softmax_jacobian", jacobian_of_something_else, "but every row should sum to 0"),
        ("expected_score_std", simulated, "keep the simulation as a test"),
        ("attention_scores", widened_in_its_own_way, "your result is float64, but the inputs are float32"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_wrong_answer_that_no_belief_explains_gets_a_sentence_of_its_own(exercise, solution, sentence) -> None:
    verdict = evaluate(solution, exercise, hidden=True, seed=5)
    assert not verdict.passed
    assert verdict.misconception is None
    assert sentence in verdict.message


def test_the_starter_of_the_hunt_runs_on_the_data_of_a_first_try_and_is_right_there() -> None:
    from autograder.exercises.attention.repaired_attention import exercise

    case = next(case for case in exercise.cases if case.name == "4 tokens of width 2")
    args = exercise.program(case, seed=3).steps[0].args
    starter = exercise.misconceptions["starter_unchanged"].function
    for ours, theirs in zip(attention.scaled_dot_product_attention(*args), starter(*args), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-12)


@pytest.mark.parametrize("belief", ["transpose_left", "axis_left"])
def test_the_faults_of_the_hunt_are_silent_where_all_sizes_are_equal(belief) -> None:
    from autograder.exercises.attention.repaired_attention import exercise

    case = next(case for case in exercise.cases if case.name == "4 sequences of 4 tokens of width 4")
    args = exercise.program(case, seed=3).steps[0].args
    output, _ = exercise.misconceptions[belief].function(*args)
    expected, _ = attention.scaled_dot_product_attention(*args)
    assert output.shape == expected.shape
    assert np.isfinite(output).all()
    assert not np.allclose(output, expected)


def test_masking_after_the_softmax_is_right_when_renormalized_though_the_hidden_key_is_loud() -> None:
    from autograder.exercises.attention.whole_attention import mask_after_softmax_and_renormalized

    for seed in range(30):
        verdict = evaluate(mask_after_softmax_and_renormalized, "scaled_dot_product_attention", hidden=True, seed=seed)
        assert verdict.passed, verdict.message
