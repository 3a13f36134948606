"""What a learner reads when an answer is wrong in a way that no known belief explains."""

import math

import numpy as np
import pytest
import torch

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


def triangle(n_q, n_k=None):
    n_k = n_q if n_k is None else n_k
    return torch.ones(n_q, n_k, dtype=torch.bool).triu(1 + n_k - n_q)


def first_query_sees_nothing(n_q, n_k=None):
    mask = triangle(n_q, n_k)
    mask[0] = True
    return mask


def doubled(n_q, n_k=None):
    return triangle(n_q, n_k).double() * 2


def minus_one(mask, dtype):
    return -mask.to(dtype)


def half_of_it(scores, mask):
    return torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1) / 2


def a_little_for_everyone(scores, mask):
    return torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1) + 0.01


def all_meet_at_the_end(document_ids):
    mask = triangle(len(document_ids)) | (document_ids[:, None] != document_ids)
    mask[-1] = False
    return mask


def first_column_alone(mask):
    return ~mask[..., :1]


def not_a_number(encoder, x):
    output = encoder(x, mask=triangle(x.shape[1])).clone()
    output[0, 0] = torch.nan
    return output


def one_column_too_many(sequences, pad_id):
    longest = max(map(len, sequences)) + 1
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    tokens = torch.tensor([sequence + [pad_id] * (longest - len(sequence)) for sequence in sequences])
    return tokens, torch.arange(longest) >= lengths[:, None]


@pytest.mark.parametrize(
    ("exercise", "solution", "sentence"),
    [
        ("softmax", a_third_of_the_weights, "sums to 0.333, but every row should sum to 1"),
        ("scaled_dot_product_attention", shifted_weights, "some weights are negative"),
        ("softmax_jacobian", jacobian_of_something_else, "but every row should sum to 0"),
        ("expected_score_std", simulated, "keep the simulation as a test"),
        ("attention_scores", widened_in_its_own_way, "your result is float64, but the inputs are float32"),
        ("causal_mask", first_query_sees_nothing, "so it should see key 0, but in your mask it sees no key"),
        ("causal_mask", doubled, "your mask has the dtype float64, but a mask of this course is boolean"),
        ("additive_mask", minus_one, "your mask holds -1, but what is added to a score is 0 or -inf"),
        ("masked_softmax", half_of_it, "the visible keys of a row share 0.5 among them"),
        ("masked_softmax", a_little_for_everyone, "a hidden key has the weight 0.01"),
        ("document_mask", all_meet_at_the_end, "(earlier, in another document)"),
        ("to_sdpa_mask", first_column_alone, "with your mask the framework's attention differs"),
        ("repaired_causal_encoder", not_a_number, "output tokens are NaN"),
        ("pad_batch", one_column_too_many, "tokens to have the shape"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_wrong_answer_that_no_belief_explains_gets_a_sentence_of_its_own(exercise, solution, sentence) -> None:
    verdict = evaluate(solution, exercise, hidden=True, seed=5)
    assert not verdict.passed
    assert verdict.misconception is None
    assert sentence in verdict.message
