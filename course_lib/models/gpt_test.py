"""GPT against the framework's stack with copied weights, its published size, and what a fresh model must show."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.framework_block import to_torch_layer
from course_lib.framework_encoder import causal_encoder
from course_lib.models.gpt import GPT, initial_std

TOLERANCE = 1e-5
NEAR_UNIFORM = 0.3  # nats; logits of a standard deviation of 0.55 cost half its square
VOCAB, WIDTH, LENGTH = 53, 24, 9


@pytest.fixture
def model():
    torch.manual_seed(0)
    return GPT(VOCAB, WIDTH, num_heads=3, num_layers=2, max_length=LENGTH)


def tokens_for(batch=4, length=LENGTH, seed=0):
    return torch.randint(VOCAB, (batch, length), generator=torch.Generator().manual_seed(seed))


def test_it_equals_the_framework_stack_with_the_same_weights(model):
    stack = nn.TransformerEncoder(to_torch_layer(model.blocks[0]), 2, norm=model.norm, enable_nested_tensor=False)
    stack.layers = nn.ModuleList(map(to_torch_layer, model.blocks))
    tokens = tokens_for()
    x = model.token_embedding.weight[tokens] + model.position_embedding.weight[: tokens.shape[1]]
    expected = causal_encoder(stack, x) @ model.token_embedding.weight.T
    torch.testing.assert_close(model(tokens), expected, rtol=0, atol=TOLERANCE)


def test_no_logit_has_a_gradient_at_a_later_token(model):
    embedded = {}
    model.token_embedding.register_forward_hook(lambda *call: embedded.update(x=call[2]))
    logits = model(tokens_for(batch=1))
    for place in range(LENGTH):
        (found,) = torch.autograd.grad(logits[0, place].square().sum(), embedded["x"], retain_graph=True)
        moved = found[0].abs().sum(-1)
        assert (moved[: place + 1] > 0).all()
        assert (moved[place + 1 :] == 0).all()


def test_a_fresh_model_is_nearly_uniform(model):
    tokens = tokens_for(batch=32)
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    assert abs(loss.item() - math.log(VOCAB)) < NEAR_UNIFORM


def test_matrices_start_as_in_the_paper_at_its_width_and_wider_in_narrow_models():
    assert initial_std(768) == pytest.approx(0.02)
    for width in (24, 96, 384):
        torch.manual_seed(0)
        product = torch.randn(400, width) @ (initial_std(width) * torch.randn(width, 400))
        assert product.std().item() == pytest.approx(0.02 * math.sqrt(768), rel=0.05)


def test_a_repeated_token_is_told_apart_by_its_place(model):
    logits = model(torch.full((1, LENGTH), 5))
    assert (logits[0, 1:] - logits[0, :-1]).abs().amax(-1).min() > 100 * TOLERANCE


def test_the_head_is_the_token_embedding_itself(model):
    names = dict(model.named_parameters())
    assert not any("head" in name for name in names)
    model(tokens_for()).square().sum().backward()
    unseen = sorted(set(range(VOCAB)) - set(tokens_for().flatten().tolist()))
    assert (model.token_embedding.weight.grad[unseen].abs().sum(-1) > 0).all()


def test_the_published_size_of_gpt_2():
    with torch.device("meta"):
        model = GPT(50257, 768, num_heads=12, num_layers=12, max_length=1024)
    assert sum(weight.numel() for weight in model.parameters()) == 124_439_808


def test_too_long_a_sequence_is_refused_in_a_sentence(model):
    with pytest.raises(ValueError, match="`tokens` has 10 places, and this model has learned positions for 9"):
        model(tokens_for(length=LENGTH + 1))


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="`num_heads` must divide the width"):
        GPT(VOCAB, WIDTH, num_heads=5, num_layers=1, max_length=LENGTH)


def test_it_learns_a_short_cycle_by_heart(model):
    tokens = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 3]])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        loss = F.cross_entropy(model(tokens[:, :-1])[0], tokens[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
