"""Each instrument reads what it says, checked by an independent computation."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.models.watched import WatchedModel
from course_lib.training.recorder import SERIES, Recorder, even_entropy, gradient_norm, mean_entropy

RELATIVE = 1e-5


@pytest.fixture
def watched_step():
    torch.manual_seed(0)
    model = WatchedModel(10, 9, num_layers=3, d_model=12, num_heads=3)
    recorder = Recorder(model)
    tokens = torch.randint(10, (4, 9))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    recorder.read_gradients(loss.item())
    before = [p.detach().clone() for p in model.blocks.parameters() if p.ndim > 1]
    optimizer.step()
    recorder.read_update()
    return model, recorder.record, before


def test_gradient_norms_run_from_the_first_block_to_the_last(watched_step):
    model, record, _ = watched_step
    flat = [torch.cat([p.grad.flatten() for p in block.parameters()]).norm().item() for block in model.blocks]
    assert record.layer_grad_norms == [pytest.approx(flat, rel=RELATIVE)]
    assert record.grad_norm == pytest.approx(flat[:1], rel=RELATIVE)


def test_the_update_ratio_is_that_of_the_middle_matrix(watched_step):
    model, record, before = watched_step
    after = [p.detach() for p in model.blocks.parameters() if p.ndim > 1]
    ratios = sorted(((new - old).norm() / old.norm()).item() for new, old in zip(after, before, strict=True))
    middle = (ratios[8] + ratios[9]) / 2  # six matrices in each of three blocks
    assert record.update_ratio == pytest.approx([middle], rel=RELATIVE)


def test_scores_and_entropies_are_those_of_all_blocks(watched_step):
    model, record, _ = watched_step
    assert record.max_score == [max(block.attention.largest_score for block in model.blocks)]
    weights = torch.stack([block.attention.weights for block in model.blocks]).double()
    logs = torch.where(weights > 0, weights.clamp(min=1e-300).log(), 0)
    assert record.attention_entropy == pytest.approx([-(weights * logs).sum(-1).mean().item()], rel=RELATIVE)


def test_the_scale_is_that_of_the_stream_after_each_block(watched_step):
    torch.manual_seed(0)
    model = WatchedModel(10, 9, num_layers=2, d_model=12, num_heads=3)
    recorder = Recorder(model)
    tokens = torch.randint(10, (2, 9))
    x = model.tokens(tokens) + model.positions.weight
    mask = torch.ones(9, 9, dtype=torch.bool).triu(1)
    expected = []
    for block in model.blocks:
        x = block(x, mask)
        expected.append(x.square().mean().sqrt().item())
    model(tokens)
    assert recorder.scales == pytest.approx(expected, rel=RELATIVE)


def test_five_series_of_equal_length_go_to_the_diagnosis(watched_step):
    series = watched_step[1].series()
    assert tuple(series) == SERIES
    assert {tuple(values.shape) for values in series.values()} == {(1,)}


def test_even_attention_is_the_baseline_of_the_entropy():
    visible = torch.ones(6, 6).tril()
    even = (visible / visible.sum(-1, keepdim=True))[None, None]
    assert mean_entropy(even) == pytest.approx(even_entropy(6, first_hidden=1), rel=RELATIVE)
    assert even_entropy(3, first_hidden=3) == pytest.approx(math.log(3))
    assert mean_entropy(torch.eye(6)[None, None]) == 0.0


def test_a_gradient_that_is_not_finite_has_no_length():
    layer = torch.nn.Linear(2, 2)
    layer.weight.grad = torch.full((2, 2), math.inf)
    assert math.isnan(gradient_norm(layer))
