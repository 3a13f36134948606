"""The encoder-decoder: causal, blind to padding, the same over its memory, and step by step as in one pass."""

import pytest
import torch
from torch import nn

from course_lib.decoding import greedy_decode
from course_lib.models.seq2seq import Seq2Seq

BATCH, SOURCE, TARGET = 3, 7, 5


def model_and_inputs(num_layers: int = 2):
    torch.manual_seed(0)
    model = Seq2Seq(11, 9, 10, 8, d_model=12, num_heads=3, num_layers=num_layers, d_ff=20).double()
    source, tokens = torch.randint(11, (BATCH, SOURCE)), torch.randint(9, (BATCH, TARGET))
    mask = torch.zeros(BATCH, SOURCE, dtype=torch.bool)
    mask[0, -3:] = True
    return model, source, mask, tokens


def test_a_later_token_changes_no_earlier_logits():
    model, source, mask, tokens = model_and_inputs()
    before = model(source, mask, tokens)
    tokens[:, 3] = (tokens[:, 3] + 1) % 9
    after = model(source, mask, tokens)
    torch.testing.assert_close(after[:, :3], before[:, :3], rtol=0, atol=0)
    assert (after[:, 3:] != before[:, 3:]).any()


def test_padding_has_no_influence_and_a_shorter_batch_gives_the_same():
    model, source, mask, tokens = model_and_inputs()
    before = model(source, mask, tokens)
    source[0, -3:] = 10
    torch.testing.assert_close(model(source, mask, tokens), before, rtol=0, atol=0)
    torch.testing.assert_close(model(source[:1, :4], None, tokens[:1]), before[:1])


def test_every_source_token_and_every_written_token_has_an_influence():
    model, source, mask, tokens = model_and_inputs()
    before = model(source, mask, tokens)
    for place in range(4):
        changed = source.clone()
        changed[:, place] = (changed[:, place] + 1) % 11
        assert (model(changed, mask, tokens) != before).all(dim=-1).all()


@pytest.mark.parametrize("num_layers", [1, 2])
def test_writing_over_the_memory_equals_reading_anew_at_every_step(num_layers):
    model, source, mask, _ = model_and_inputs(num_layers)
    memory = model.remember(model.encode(source, mask), mask)
    assert len(memory.keys) == len(memory.values) == num_layers
    kept = greedy_decode(lambda tokens: model.decode(tokens, memory)[0][:, -1], 0, 1, 8, BATCH)
    anew = greedy_decode(lambda tokens: model(source, mask, tokens)[:, -1], 0, 1, 8, BATCH)
    assert torch.equal(kept, anew)


def test_the_maps_of_every_block_share_out_one():
    model, source, mask, tokens = model_and_inputs()
    _, maps = model.decode(tokens, model.remember(model.encode(source, mask), mask))
    assert [tuple(one.shape) for one in maps] == [(BATCH, 3, TARGET, SOURCE)] * 2
    for one in maps:
        torch.testing.assert_close(one.sum(-1), torch.ones(BATCH, 3, TARGET, dtype=torch.float64))
        assert not one[0, ..., -3:].any()


def test_every_parameter_learns():
    model, source, mask, tokens = model_and_inputs()
    nn.functional.cross_entropy(model(source, mask, tokens).flatten(0, 1), tokens.flatten()).backward()
    # A bias of the keys adds the same to all scores of a query, and the softmax does not see it.
    still = {name for name, p in model.named_parameters() if p.grad.abs().max() < 1e-12}
    assert still == {name for name, _ in model.named_parameters() if name.endswith("w_k.bias")}
