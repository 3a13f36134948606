"""The decoder's block against the framework's, with copied weights, and what may depend on what."""

import pytest
import torch
from torch import nn

from course_lib.cross_attention import cache_memory
from course_lib.decoder_block import DecoderBlock
from course_lib.framework_attention import to_torch_attention
from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
BATCH, TARGET, SOURCE, HEADS, D_MODEL, D_FF = 2, 5, 7, 3, 15, 22


def block_and_inputs(dtype=torch.float64):
    torch.manual_seed(0)
    block = DecoderBlock(D_MODEL, HEADS, D_FF).to(dtype)
    for parameter in block.parameters():
        nn.init.normal_(parameter, std=0.3)
    x, memory = torch.randn(BATCH, TARGET, D_MODEL, dtype=dtype), torch.randn(BATCH, SOURCE, D_MODEL, dtype=dtype)
    mask = torch.zeros(BATCH, SOURCE, dtype=torch.bool)
    mask[0, -2:] = True
    return block, x, memory, mask


def framework_block(block: DecoderBlock) -> nn.TransformerDecoderLayer:
    dtype = block.norm_1.weight.dtype
    theirs = nn.TransformerDecoderLayer(D_MODEL, HEADS, D_FF, dropout=0.0, batch_first=True).to(dtype)
    for ours, name in ((block.self_attention, "self_attn"), (block.cross_attention, "multihead_attn")):
        twin = MultiHeadAttention(D_MODEL, HEADS).to(dtype)
        twin.load_state_dict(ours.state_dict())
        getattr(theirs, name).load_state_dict(to_torch_attention(twin).state_dict())
    pairs = [(block.ffn.linear_1, theirs.linear1), (block.ffn.linear_2, theirs.linear2)]
    pairs += [(block.norm_1, theirs.norm1), (block.norm_2, theirs.norm2), (block.norm_3, theirs.norm3)]
    for ours, other in pairs:
        other.load_state_dict(ours.state_dict())
    return theirs


@pytest.mark.parametrize("dtype", TOLERANCE, ids=["float32", "float64"])
def test_it_equals_the_framework_block_with_copied_weights_forward_and_backward(dtype):
    block, x, memory, mask = block_and_inputs(dtype)
    theirs = framework_block(block)
    found = []
    for call in (
        lambda x, memory: block(x, memory, mask),
        lambda x, memory: theirs(x, memory, tgt_mask=causal_mask(TARGET), memory_key_padding_mask=mask),
    ):
        inputs = [tensor.clone().requires_grad_() for tensor in (x, memory)]
        output = call(*inputs)
        uneven = torch.arange(output.numel(), dtype=dtype).cos().reshape(output.shape)
        found.append((output, *torch.autograd.grad((output * uneven).sum(), inputs)))
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=100 * TOLERANCE[dtype])


def test_a_later_token_changes_no_earlier_one_and_the_memory_changes_all():
    block, x, memory, mask = block_and_inputs()
    before = block(x, memory, mask)
    x[:, 3] += 1
    later = block(x, memory, mask)
    torch.testing.assert_close(later[:, :3], before[:, :3], rtol=0, atol=0)
    assert (later[:, 3:] != before[:, 3:]).any()
    memory[:, 0] += 1
    assert (block(x, memory, mask) != later).any(dim=-1).all()


def test_over_its_cache_it_gives_the_same_and_the_weights_too():
    block, x, memory, mask = block_and_inputs()
    output, weights = block.over_cache(x, *cache_memory(block.cross_attention, memory), mask)
    torch.testing.assert_close(output, block(x, memory, mask), rtol=0, atol=0)
    assert weights.shape == (BATCH, HEADS, TARGET, SOURCE)
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, HEADS, TARGET, dtype=torch.float64))
    assert not weights[0, ..., -2:].any()
