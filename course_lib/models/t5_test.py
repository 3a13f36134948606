"""T5 against layers built from the framework's attention, its published sizes, and what each side may see."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.buckets import relative_position_bucket
from course_lib.models.t5 import T5, T5Attention, T5Block, shift_right

TOLERANCE = 1e-4
VOCAB, WIDTH, HEADS = 37, 12, 3


@pytest.fixture
def model():
    torch.manual_seed(0)
    return T5(VOCAB, WIDTH, HEADS, num_layers=2, d_ff=20)


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(1)
    inputs, targets = (torch.randint(1, VOCAB, (2, length), generator=generator) for length in (8, 5))
    padding = torch.arange(8) >= torch.tensor([[8], [6]])
    return inputs, targets, padding


def framework_attention(layer: T5Attention) -> nn.MultiheadAttention:
    """Build the framework's attention, whose division by √d_head is undone in its queries."""
    made = nn.MultiheadAttention(WIDTH, HEADS, bias=False, batch_first=True)
    scale = math.sqrt(WIDTH // HEADS)
    weights = [scale * layer.w_q.weight, layer.w_k.weight, layer.w_v.weight]
    made.load_state_dict({"in_proj_weight": torch.cat(weights), "out_proj.weight": layer.w_o.weight})
    return made


def rms(x: torch.Tensor, norm: nn.Module) -> torch.Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * norm.weight


def framework_block(block: T5Block, x, bias, memory=None, padding=None):
    read = rms(x, block.norm_attention)
    x = x + framework_attention(block.attention)(read, read, read, attn_mask=bias, need_weights=False)[0]
    if memory is not None:
        read = rms(x, block.norm_cross)
        attention = framework_attention(block.cross)
        x = x + attention(read, memory, memory, key_padding_mask=padding, need_weights=False)[0]
    read = rms(x, block.norm_ffn)
    return x + (read @ block.ffn.linear_1.weight.T).clamp(min=0) @ block.ffn.linear_2.weight.T


def framework_bias(stack, length, batch, bidirectional, padding=None):
    """Write the bias of every pair of places as the additive mask that the framework takes, one map per head."""
    bias = torch.empty(batch, HEADS, length, length)
    for query in range(length):
        for key in range(length):
            bucket = int(relative_position_bucket(torch.tensor(key - query), bidirectional))
            bias[:, :, query, key] = stack.bias.table.weight[bucket]
            if not bidirectional and key > query:
                bias[:, :, query, key] = -math.inf
    if padding is not None:
        bias = bias.masked_fill(padding[:, None, None, :], -math.inf)
    return bias.flatten(0, 1)


def test_the_whole_model_equals_one_built_from_the_framework(model, batch):
    inputs, targets, padding = batch
    with torch.no_grad():
        memory = F.embedding(inputs, model.embedding.weight)
        bias = framework_bias(model.encoder, 8, 2, bidirectional=True, padding=padding)
        for block in model.encoder.blocks:
            memory = framework_block(block, memory, bias)
        memory = rms(memory, model.encoder.norm)
        x = F.embedding(F.pad(targets[:, :-1], (1, 0)), model.embedding.weight)
        bias = framework_bias(model.decoder, 5, 2, bidirectional=False)
        for block in model.decoder.blocks:
            x = framework_block(block, x, bias, memory, padding)
        expected = rms(x, model.decoder.norm) / math.sqrt(WIDTH) @ model.embedding.weight.T
        torch.testing.assert_close(model(*batch), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(("size", "published"), [((512, 8, 6), 60_506_624), ((768, 12, 12), 222_903_552)])
def test_the_published_sizes(size, published):
    with torch.device("meta"):
        model = T5(32128, *size)
    assert sum(weight.numel() for weight in model.parameters()) == published


def test_no_later_target_moves_a_logit(model, batch):
    inputs, targets, padding = batch
    before = model(inputs, targets, padding)
    for place in range(5):
        changed = targets.clone()
        changed[:, place] = (changed[:, place] + 1) % VOCAB
        moved = (model(inputs, changed, padding) - before).abs().amax((0, 2)) > 0
        assert not moved[: place + 1].any()
        assert moved[place + 1 :].all()


def test_every_visible_input_and_no_padding_moves_the_logits(model, batch):
    inputs, targets, padding = batch
    before = model(inputs, targets, padding)
    for place in range(8):
        changed = inputs.clone()
        changed[:, place] = (changed[:, place] + 1) % VOCAB
        moved = (model(changed, targets, padding) - before).abs().amax((1, 2)) > 0
        assert torch.equal(moved, ~padding[:, place])


def test_the_encoder_tells_left_from_right(model):
    encoder = model.encoder
    ahead, behind = (encoder.bias(3)[:, *pair] for pair in ((0, 1), (1, 0)))
    assert not torch.allclose(ahead, behind)


def test_only_distances_count_in_the_decoder_too(model):
    bias = model.decoder.bias(6)
    for distance in range(-5, 6):
        line = torch.diagonal(bias, distance, dim1=1, dim2=2)
        assert torch.equal(line, line[:, :1].expand_as(line))


def test_a_fresh_model_is_not_far_from_uniform():
    torch.manual_seed(0)
    model = T5(101, 64, 4, num_layers=2)
    inputs, targets = torch.randint(1, 101, (16, 9)), torch.randint(1, 101, (16, 7))
    loss = F.cross_entropy(model(inputs, targets).flatten(0, 1), targets.flatten())
    assert abs(loss.item() - math.log(101)) < 1.0


def test_shift_right_starts_with_the_start_token_and_hides_ignored_labels():
    targets = torch.tensor([[5, 6, 7], [8, -100, -100]])
    assert shift_right(targets).tolist() == [[0, 5, 6], [0, 8, 0]]
    assert targets.tolist() == [[5, 6, 7], [8, -100, -100]]
