"""BERT against the framework's stack with copied weights, its published size, and what its heads may see."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.framework_block import to_torch_layer
from course_lib.models.bert import BERT

TOLERANCE = 1e-5
NEAR_UNIFORM = 0.4  # nats
VOCAB, WIDTH, LENGTH = 47, 20, 11


@pytest.fixture
def model():
    torch.manual_seed(0)
    return BERT(VOCAB, WIDTH, num_heads=4, num_layers=2, max_length=LENGTH)


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(VOCAB, (3, LENGTH), generator=generator)
    segments = (torch.arange(LENGTH) >= 4).long().expand(3, -1)
    padding = torch.arange(LENGTH) >= torch.tensor([[LENGTH], [7], [5]])
    return tokens, segments, padding


def test_the_encoder_equals_the_framework_stack_with_the_same_weights(model, batch):
    tokens, segments, padding = batch
    stack = nn.TransformerEncoder(to_torch_layer(model.blocks[0]), 2, enable_nested_tensor=False)
    stack.layers = nn.ModuleList(map(to_torch_layer, model.blocks))
    tables = (model.token_embedding, model.position_embedding, model.segment_embedding)
    ids = (tokens, torch.arange(LENGTH), segments)
    x = sum(table.weight[chosen] for table, chosen in zip(tables, ids, strict=True))
    x = F.layer_norm(x, (WIDTH,), model.embedding_norm.weight, model.embedding_norm.bias, 1e-12)
    expected = stack(x, src_key_padding_mask=padding)
    torch.testing.assert_close(model.encode(*batch)[~padding], expected[~padding], rtol=0, atol=TOLERANCE)


def test_every_token_sees_every_other_one(model, batch):
    tokens, segments, _ = batch
    embedded = {}
    model.token_embedding.register_forward_hook(lambda *call: embedded.update(x=call[2]))
    encoded = model.encode(tokens[:1], segments[:1])
    for place in range(LENGTH):
        (found,) = torch.autograd.grad(encoded[0, place, 0], embedded["x"], retain_graph=True)
        assert (found[0].abs().sum(-1) > 0).all()


def test_padding_moves_no_visible_logit(model, batch):
    tokens, segments, padding = batch
    logits, pairs = model(tokens, segments, padding)
    changed, changed_pairs = model(tokens.masked_fill(padding, 5), segments, padding)
    assert torch.equal(logits[~padding], changed[~padding])
    assert torch.equal(pairs, changed_pairs)


def test_segments_tell_the_two_sentences_apart(model, batch):
    tokens, segments, _ = batch
    assert (model.encode(tokens, segments) - model.encode(tokens)).abs().max() > 100 * TOLERANCE
    assert torch.equal(model.encode(tokens), model.encode(tokens, torch.zeros_like(tokens)))


def test_both_heads_of_a_fresh_model_are_nearly_uniform(model, batch):
    tokens, segments, padding = batch
    logits, pairs = model(tokens, segments, padding)
    assert logits.shape == (3, LENGTH, VOCAB)
    assert pairs.shape == (3, 2)
    assert abs(F.cross_entropy(logits.flatten(0, 1), tokens.flatten()).item() - math.log(VOCAB)) < NEAR_UNIFORM
    assert abs(F.cross_entropy(pairs, torch.tensor([0, 1, 1])).item() - math.log(2)) < NEAR_UNIFORM


def test_the_pair_head_reads_the_first_token_alone(model, batch):
    encoded = model.encode(*batch)
    other = torch.cat([encoded[:, :1], torch.randn_like(encoded[:, 1:])], dim=1)
    assert torch.equal(model.pair_logits(encoded), model.pair_logits(other))


def test_every_parameter_learns_from_both_objectives_together(model, batch):
    logits, pairs = model(*batch)
    (
        F.cross_entropy(logits.flatten(0, 1), batch[0].flatten()) + F.cross_entropy(pairs, torch.tensor([0, 1, 1]))
    ).backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in model.parameters())


def test_the_published_size_of_bert_base():
    with torch.device("meta"):
        model = BERT(30522, 768, num_heads=12, num_layers=12, max_length=512)
    heads = [*model.token_head.parameters(), model.token_bias, *model.pair_head.parameters()]
    found = sum(weight.numel() for weight in model.parameters()) - sum(weight.numel() for weight in heads)
    assert found == 109_482_240


def test_too_long_a_sequence_is_refused_in_a_sentence(model):
    with pytest.raises(ValueError, match="`tokens` has 12 places, and this model has learned positions for 11"):
        model(torch.zeros(1, LENGTH + 1, dtype=torch.long))
