"""The watched model: attention as in the course, a mask that can leak by one place, and a softmax that can overflow."""

import math

import pytest
import torch
from torch import nn

from course_lib.models.deep_reverser import STEPS
from course_lib.models.watched import WatchedAttention, WatchedModel, careless_softmax
from course_lib.multi_head import MultiHeadAttention
from course_lib.training.limits import largest_safe_score

TOLERANCE = 1e-6  # of float32 sums
LENGTH, D_MODEL, HEADS = 7, 12, 3
FUTURE = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)


def masked_plainly(scores, mask):
    return scores.masked_fill(mask, -math.inf).softmax(-1)


def test_its_attention_is_that_of_the_course():
    torch.manual_seed(0)
    ours, theirs = WatchedAttention(D_MODEL, HEADS, masked_plainly), MultiHeadAttention(D_MODEL, HEADS)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, LENGTH, D_MODEL)
    expected, weights = theirs(x, x, x, FUTURE)
    torch.testing.assert_close(ours(x, FUTURE), expected, rtol=1e-5, atol=TOLERANCE)
    torch.testing.assert_close(ours.weights, weights.detach(), rtol=1e-5, atol=TOLERANCE)


def test_the_largest_score_is_that_of_the_visible_ones():
    torch.manual_seed(1)
    attention = WatchedAttention(D_MODEL, 1, masked_plainly)
    x = torch.randn(1, LENGTH, D_MODEL)
    attention(x, FUTURE)
    query, key = (linear(x)[0] for linear in (attention.w_q, attention.w_k))
    by_loops = max(
        (query[i] @ key[j]).item() / math.sqrt(D_MODEL) for i in range(LENGTH) for j in range(LENGTH) if j <= i
    )
    assert attention.largest_score == pytest.approx(by_loops, rel=1e-5)


def test_the_careless_softmax_is_right_until_exp_overflows():
    scores = torch.randn(1, 1, LENGTH, LENGTH, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(careless_softmax(scores, FUTURE), masked_plainly(scores, FUTURE))
    scores[0, 0, 3, 1] = largest_safe_score(torch.float32) + 1
    careless = careless_softmax(scores, FUTURE)
    assert careless[0, 0, 3].isnan().any()
    assert careless[0, 0, 2].isfinite().all()


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize(("first_hidden", "reach"), [(1, 0), (2, 1)], ids=["right mask", "leaking mask"])
def test_a_place_depends_on_later_ones_only_where_the_mask_leaks(kind, first_hidden, reach):
    torch.manual_seed(0)
    model = WatchedModel(10, LENGTH, 1, kind, D_MODEL, HEADS, first_hidden=first_hidden)
    tokens = torch.zeros(1, LENGTH, dtype=torch.long)
    changed = tokens.clone()
    changed[0, 4] = 7
    moved = (model(tokens) - model(changed)).abs().amax(dim=-1)[0] > 0
    assert moved.nonzero().flatten().tolist() == list(range(4 - reach, LENGTH))


def test_an_embedding_factor_multiplies_what_enters_the_stack():
    torch.manual_seed(0)
    model = WatchedModel(10, LENGTH, num_layers=0, kind="post-norm", d_model=D_MODEL, embedding_factor=3.0)
    model.head = nn.Identity()
    tokens = torch.arange(LENGTH)[None]
    expected = 3 * (model.tokens(tokens) + model.positions.weight)
    torch.testing.assert_close(model(tokens), expected)
