"""The leak detector finds planted leaks, however faint, and raises no false alarm."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import pytest
import torch

from course_lib.dependence import dependence
from course_lib.masks import causal_mask
from course_lib.tensor_attention import tensor_attention

TOKENS, WIDTH = 5, 3


def drawn(dtype=torch.float64):
    return torch.randn(TOKENS, WIDTH, generator=torch.Generator().manual_seed(0), dtype=dtype)


def attention(mask):
    return lambda x: tensor_attention(x, x, x, mask)[0]


def test_a_running_sum_depends_on_the_past_alone():
    assert torch.equal(dependence(lambda x: x.cumsum(0), drawn()), ~causal_mask(TOKENS))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_depends_on_what_its_mask_shows(dtype):
    mask = torch.rand(TOKENS, TOKENS, generator=torch.Generator().manual_seed(1)) < 0.5
    mask.fill_diagonal_(False)  # a query depends on its own token anyway
    assert torch.equal(dependence(attention(mask), drawn(dtype)), ~mask)


def test_a_mask_after_the_softmax_leaks_through_the_denominator():
    def leaky(x):
        weights = torch.softmax(x @ x.mT, dim=-1).masked_fill(causal_mask(TOKENS), 0)
        return weights @ x

    assert dependence(leaky, drawn()).all()


def test_as_many_rows_as_outputs():
    assert dependence(lambda x: x[1:4].repeat(3, 2), drawn()).shape == (9, TOKENS)
    assert dependence(lambda x: x.mean(0, keepdim=True), drawn()).tolist() == [[True] * TOKENS]


def test_effects_that_cancel_in_a_sum_are_found():
    def opposite_outputs(x):
        mixed = x.flip(0)[:, :1]
        return torch.cat([mixed, -mixed], dim=1)

    def opposite_inputs(x):
        return x.flip(0)[:, :1] - x.flip(0)[:, 1:2]

    anti_diagonal = torch.eye(TOKENS, dtype=torch.bool).flip(0)
    for function in (opposite_outputs, opposite_inputs):
        assert torch.equal(dependence(function, drawn()), anti_diagonal)


def test_a_faint_effect_is_found():
    assert dependence(lambda x: x + 1e-30 * x.flip(0), drawn(torch.float32))[0, -1]


def test_a_constant_depends_on_nothing():
    assert not dependence(lambda x: torch.ones(4, 2), drawn()).any()


def test_the_input_stays_as_it_was():
    x = drawn()
    dependence(lambda y: y * 2, x)
    assert not x.requires_grad
    assert x.grad is None


def test_a_batch_is_refused():
    with pytest.raises(ValueError, match=r"the output of `function` must have the axes \(token, feature\)"):
        dependence(lambda x: x[None], drawn())
