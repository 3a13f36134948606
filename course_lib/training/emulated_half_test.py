"""Emulated half precision loses what half precision loses, and nothing else."""

import pytest
import torch

from course_lib.training.emulated_half import Recipe, reader_gradients, rounded, train_rounded, zeroed_share


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rounding_gives_the_numbers_of_the_dtype_forward_and_backward(dtype):
    x = torch.randn(50, requires_grad=True)
    y = rounded(x, dtype)
    assert torch.equal(y.to(dtype).float(), y)
    assert torch.equal(y, x.to(dtype).float())
    weights = torch.randn(50) * 1e-6
    (grad,) = torch.autograd.grad(y @ weights, x)
    assert torch.equal(grad, weights.to(dtype).float())


def test_nothing_is_rounded_in_float32():
    x = torch.randn(3)
    assert rounded(x, None) is x


def test_without_rounding_scale_and_pieces_change_nothing(capsys):
    plain, scaled = (train_rounded(Recipe(scale=s, pieces=p), 3) for s, p in ((1.0, 1), (1024.0, 8)))
    assert plain.losses == pytest.approx(scaled.losses, rel=1e-5)
    assert plain.skipped == scaled.skipped == 0
    assert "3 steps, loss" in capsys.readouterr().out


def test_a_scale_that_overflows_is_skipped_and_found_by_halving():
    fixed, dynamic = (train_rounded(Recipe(torch.float16, scale=s), 40) for s in (2.0**36, "dynamic"))
    assert fixed.skipped == 40
    assert dynamic.scales[0] == 2.0**36
    assert dynamic.scales[-1] == dynamic.scales[0] / 2**dynamic.skipped
    assert 0 < dynamic.skipped < 40


def test_tiny_gradients_vanish_unscaled_and_survive_scaled():
    grads = [torch.full((10,), 1e-8), torch.zeros(5), torch.ones(10)]
    assert zeroed_share(grads, 1.0, torch.float16) == (0.5, 0.0)
    assert zeroed_share(grads, 1024.0, torch.float16) == (0.0, 0.0)
    assert zeroed_share(grads, 2.0**17, torch.float16) == (0.0, 0.5)
    assert zeroed_share(grads, 1.0, torch.bfloat16) == (0.0, 0.0)


def test_the_gradients_are_those_of_every_parameter():
    grads = reader_gradients(1)
    assert all(grad.isfinite().all() for grad in grads)
    assert len(grads) > 30


def test_no_step_is_refused():
    with pytest.raises(ValueError, match="steps"):
        train_rounded(Recipe(), 0)


@pytest.mark.slow
def test_the_two_ablations_of_the_chapter_bite():
    low = {"rate": 1e-4}
    plain, scaled, unscaled = (
        train_rounded(recipe, 150)
        for recipe in (Recipe(), Recipe(torch.float16, "dynamic", pieces=6250), Recipe(torch.float16, pieces=6250))
    )
    assert scaled.final == pytest.approx(plain.final, abs=0.1)
    assert unscaled.final > plain.final + 1
    kept, lost = (train_rounded(Recipe(torch.bfloat16, master=master, **low), 150) for master in (True, False))
    assert kept.final == pytest.approx(train_rounded(Recipe(**low), 150).final, abs=0.05)
    assert lost.final > kept.final + 0.5
