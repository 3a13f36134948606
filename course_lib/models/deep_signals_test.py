"""Signals through depth: they equal direct computations, and theory where there is one."""

import pytest
import torch
from torch import nn

from course_lib.models.deep_reverser import STEPS
from course_lib.models.deep_signals import fresh_stack, identity_share, measure_signals, variety


@pytest.mark.parametrize("kind", STEPS)
def test_gradients_equal_finite_differences_of_the_readout(kind):
    num_layers = 2
    model, tokens = fresh_stack(kind, num_layers, 1.0, seed=0)
    model.double()
    stream = model.embed(tokens)
    direction = torch.randn(stream.shape, generator=torch.Generator().manual_seed(0)).double()

    def readout(x):
        for block in model.blocks:
            x = block(x)
        return (model.final_norm(x) * direction).sum()

    step, gradient = 1e-6, torch.zeros_like(stream)
    for place in range(stream.numel()):
        nudge = torch.zeros(stream.numel(), dtype=torch.float64)
        nudge[place] = step
        nudge = nudge.reshape(stream.shape)
        gradient.view(-1)[place] = (readout(stream + nudge) - readout(stream - nudge)) / (2 * step)
    expected = (gradient.norm() / direction.norm()).item()
    assert measure_signals(kind, num_layers).gradients[0] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("kind", STEPS)
def test_there_is_one_number_per_block_input_and_one_for_the_output(kind):
    signals = measure_signals(kind, 5)
    assert len(signals.gradients) == len(signals.sizes) == len(signals.varieties) == 6
    assert measure_signals(kind, 5) == signals
    assert measure_signals(kind, 5, seed=1) != signals


def test_post_norm_keeps_size_one_and_weights_of_zero_leave_the_pre_norm_stream_alone():
    assert measure_signals("post-norm", 6).sizes[1:] == pytest.approx([1.0] * 6, rel=1e-4)
    untouched = measure_signals("pre-norm", 6, factor=0.0)
    assert untouched.varieties[-1] == pytest.approx(untouched.varieties[0], rel=0.2)  # biases remain
    assert identity_share("pre-norm", 6) == pytest.approx(1.0, abs=0.2)


def test_without_skips_the_tokens_become_alike_within_a_few_blocks():
    assert measure_signals("no skip", 6).varieties[-1] < 1e-4
    assert measure_signals("pre-norm", 6).varieties[-1] > 0.5


def test_variety_is_zero_for_equal_tokens_one_for_opposite_ones_and_ignores_scale():
    token = torch.arange(1.0, 4.0)
    assert variety(torch.stack([token, token])) == 0
    assert variety(torch.stack([token, -token])) == pytest.approx(1)
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    assert variety(7 * x) == pytest.approx(variety(x))


def test_post_norm_shrinks_the_identity_path_and_pre_norm_does_not():
    shares = [identity_share("post-norm", depth) for depth in (1, 8, 24)]
    assert shares[0] > shares[1] > shares[2]
    assert abs(identity_share("pre-norm", 24) - 1) < 0.2


def test_fresh_stacks_leave_torchs_own_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fresh_stack("pre-norm", 2, 1.0, seed=0)
    assert torch.equal(torch.rand(3), expected)


def test_factor_scales_weight_matrices_and_nothing_else():
    plain, scaled = (fresh_stack("pre-norm", 1, factor, seed=0)[0] for factor in (1.0, 3.0))
    for (name, one), other in zip(plain.named_parameters(), scaled.parameters(), strict=True):
        is_matrix = name.startswith("blocks") and name.endswith("weight") and "norm" not in name
        torch.testing.assert_close(other, 3 * one if is_matrix else one)
    assert isinstance(plain, nn.Module)
