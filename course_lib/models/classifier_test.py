"""A classifier that padding and company cannot move, that knows order, and that learns."""

import pytest
import torch

from course_lib.models.classifier import TransformerClassifier
from course_lib.padded_batches import masked_mean, pad_batch

VOCAB, WIDTH, CLASSES = 11, 16, 3
TOLERANCE = 1e-5


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TransformerClassifier(VOCAB, WIDTH, num_heads=4, num_layers=2, num_classes=CLASSES)


SEQUENCES = [[3, 1, 4, 1, 5], [9], [2, 6]]


def test_a_sequence_gets_the_same_logits_alone_and_in_company(model):
    together = model(*pad_batch(SEQUENCES, pad_id=0))
    assert together.shape == (3, CLASSES)
    for sequence, logits in zip(SEQUENCES, together, strict=True):
        alone = model(*pad_batch([sequence], pad_id=0))[0]
        torch.testing.assert_close(alone, logits, rtol=0, atol=TOLERANCE)


def test_what_stands_in_the_padding_changes_nothing(model):
    tokens, mask = pad_batch(SEQUENCES, pad_id=0)
    assert torch.equal(model(tokens, mask), model(tokens.masked_fill(mask, 8), mask))


@pytest.mark.parametrize("hide_attention", [False, True])
def test_one_of_the_two_masks_is_not_enough(model, hide_attention):
    tokens, mask = pad_batch(SEQUENCES, pad_id=0)
    visible = torch.zeros_like(mask)
    features = model.encode(tokens, mask if hide_attention else visible)
    wrong = model.head(masked_mean(features, visible if hide_attention else mask))
    assert (wrong - model(tokens, mask))[1:].abs().max() > 100 * TOLERANCE


def test_the_order_of_the_tokens_matters(model):
    mask = torch.zeros(1, 4, dtype=torch.bool)
    logits = [model(torch.tensor([tokens]), mask) for tokens in ([1, 2, 3, 4], [2, 1, 3, 4])]
    assert (logits[0] - logits[1]).abs().max() > 100 * TOLERANCE


def test_an_empty_sequence_gives_finite_logits_and_gradients(model):
    model(*pad_batch([[], [1, 2]], pad_id=0)).square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="`d_model` must be even"):
        TransformerClassifier(VOCAB, 15, 3, 1, CLASSES)


def test_it_learns_which_of_two_tokens_comes_first(model):
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(120):
        tokens = torch.stack([torch.randperm(VOCAB, generator=generator)[:6] for _ in range(64)])
        tokens[:, :2] = torch.tensor([1, 2])
        tokens = torch.stack([row[torch.randperm(6, generator=generator)] for row in tokens])
        tokens = torch.where((tokens == 1) | (tokens == 2), tokens, tokens.clamp(min=3))
        first = ((tokens == 1).long().argmax(1) > (tokens == 2).long().argmax(1)).long()
        loss = torch.nn.functional.cross_entropy(model(tokens, torch.zeros_like(tokens, dtype=torch.bool)), first)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.3  # ln 2 without knowing the order
