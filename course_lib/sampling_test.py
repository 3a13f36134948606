"""Sampling against chances worked out token by token, and against thousands of draws."""

import math

import pytest
import torch

from course_lib.sampling import sample_token, token_shares

EXACT = 1e-12
DRAWS, BAND = 6000, 0.035  # more than five standard deviations of any share
LOGITS = torch.tensor([0.5, 2.0, -1.0, 1.2, 0.1], dtype=torch.float64)


def shares_by_hand(logits, temperature, top_k, top_p):
    """Cut a list of (chance, token) pairs, the likeliest first."""
    weights = [math.exp(value / temperature) for value in logits.tolist()]
    ranked = sorted(((weight, token) for token, weight in enumerate(weights)), reverse=True)[:top_k]
    total = sum(weight for weight, _ in ranked)
    kept, reached = [], 0.0
    for weight, token in ranked:
        if top_p is None or reached < top_p:
            kept.append((weight, token))
        reached += weight / total
    total = sum(weight for weight, _ in kept)
    chances = {token: weight / total for weight, token in kept}
    return torch.tensor([chances.get(token, 0.0) for token in range(len(logits))], dtype=torch.float64)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("top_k", [None, 1, 3, 9])
@pytest.mark.parametrize("top_p", [None, 0.01, 0.6, 0.9, 1.0])
def test_shares_are_those_worked_out_by_hand(temperature, top_k, top_p):
    found = token_shares(LOGITS, temperature, top_k, top_p)
    assert (found - shares_by_hand(LOGITS, temperature, top_k, top_p)).abs().max() < EXACT


def test_the_token_that_crosses_p_is_kept():
    logits = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log()
    assert (token_shares(logits, top_p=0.6) > 0).tolist() == [True, True, False]
    assert (token_shares(logits, top_p=0.45) > 0).tolist() == [True, False, False]


def test_top_p_looks_at_what_top_k_left():
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64).log()
    assert token_shares(logits, top_k=2, top_p=0.5).tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_gives_shares_that_sum_to_one(dtype):
    found = token_shares(LOGITS.to(dtype), temperature=0.01, top_p=0.9)
    assert abs(found.sum() - 1) < EXACT


def test_temperature_zero_is_greedy_and_takes_the_first_of_equals():
    assert sample_token(torch.tensor([1.0, 3.0, 3.0]), temperature=0) == 1


@pytest.mark.parametrize("logits", [LOGITS * 1000, torch.tensor([-math.inf, 0.0, 1.0])])
def test_extreme_logits_can_be_sampled(logits):
    assert sample_token(logits, temperature=0.1, generator=torch.Generator().manual_seed(0)) in (1, 2)


def test_tokens_are_drawn_as_often_as_their_shares_say():
    generator = torch.Generator().manual_seed(1)
    drawn = [sample_token(LOGITS, 1.5, 4, 0.95, generator) for _ in range(DRAWS)]
    found = torch.bincount(torch.tensor(drawn), minlength=5).double() / DRAWS
    assert (found - token_shares(LOGITS, 1.5, 4, 0.95)).abs().max() < BAND


def test_equal_generators_draw_alike():
    first, second = (
        [sample_token(LOGITS, generator=torch.Generator().manual_seed(s)) for s in range(50)] for _ in "ab"
    )
    assert first == second
    assert len(set(first)) > 1


def test_logits_are_left_alone():
    logits = LOGITS.clone()
    sample_token(logits, 0.5, 2, 0.5)
    assert torch.equal(logits, LOGITS)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"temperature": -1.0}, "temperature"), ({"temperature": math.inf}, "temperature"), ({"top_k": 0}, "top_k"),
     ({"top_p": 0.0}, "top_p"), ({"top_p": 1.5}, "top_p")],
)  # fmt: skip
def test_impossible_settings_are_refused_by_name(arguments, name):
    with pytest.raises(ValueError, match=name):
        sample_token(LOGITS, **arguments)
