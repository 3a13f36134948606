"""Recurrent networks agree with the framework's, forward and backward."""

import pytest
import torch
from jaxtyping import config
from torch import nn

from course_lib.models.recurrent import RecurrentLanguageModel, recurrent_layer, rnn_forward

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a call through whose shapes the annotations would refuse first."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)


def framework_rnn(w_x: torch.Tensor, w_h: torch.Tensor, b: torch.Tensor) -> nn.RNN:
    layer = nn.RNN(*w_x.shape, batch_first=True, dtype=w_x.dtype)
    layer.load_state_dict(
        {"weight_ih_l0": w_x.T, "weight_hh_l0": w_h.T, "bias_ih_l0": b, "bias_hh_l0": torch.zeros_like(b)}
    )
    return layer


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_states_and_gradients_equal_the_frameworks(dtype):
    generator = torch.Generator().manual_seed(0)
    shapes = ((3, 7, 4), (4, 5), (5, 5), (5,))
    x, w_x, w_h, b = (torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes)
    found = rnn_forward(x, w_x, w_h, b)
    expected, _ = framework_rnn(w_x.detach(), w_h.detach(), b.detach())(x)
    torch.testing.assert_close(found, expected, atol=TOLERANCE[dtype], rtol=0)
    weights = torch.randn(found.shape, generator=generator, dtype=dtype)
    ours = torch.autograd.grad((found * weights).sum(), x)
    theirs = torch.autograd.grad((expected * weights).sum(), x)
    torch.testing.assert_close(ours, theirs, atol=10 * TOLERANCE[dtype], rtol=0)


def test_a_state_depends_on_its_past_and_never_on_its_future():
    x = torch.randn(1, 6, 3, generator=torch.Generator().manual_seed(1))
    weights = torch.ones(3, 4), torch.eye(4), torch.zeros(4)
    changed = x.clone()
    changed[:, 3] += 1
    difference = (rnn_forward(x, *weights) - rnn_forward(changed, *weights)).abs().amax(dim=(0, 2))
    assert (difference[:3] == 0).all()
    assert (difference[3:] > 0).all()


def test_no_token_gives_no_state():
    assert rnn_forward(torch.zeros(2, 0, 3), torch.zeros(3, 4), torch.zeros(4, 4), torch.zeros(4)).shape == (2, 0, 4)


@pytest.mark.usefixtures("unchecked_annotations")
@pytest.mark.parametrize(("name", "shapes"), [("x", [5, 4, 4]), ("w_h", [3, 5, 4]), ("b", [3, 4, 5])])
def test_widths_that_do_not_fit_are_named(name, shapes):
    d_x, d_h, d_b = shapes
    with pytest.raises(ValueError, match=f"`{name}` has width 5"):
        rnn_forward(torch.zeros(1, 2, d_x), torch.zeros(3, 4), torch.zeros(d_h, d_h), torch.zeros(d_b))


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_a_language_model_gives_logits_for_every_place_and_sees_no_future(kind):
    torch.manual_seed(0)
    model = RecurrentLanguageModel(11, 6, kind, num_layers=2)
    tokens = torch.randint(11, (3, 5), generator=torch.Generator().manual_seed(0))
    logits = model(tokens)
    assert logits.shape == (3, 5, 11)
    later = tokens.clone()
    later[:, 4] = (later[:, 4] + 1) % 11
    assert torch.equal(model(later)[:, :4], logits[:, :4])


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="got 'cnn'"):
        recurrent_layer("cnn", 2, 2)
