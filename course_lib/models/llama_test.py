"""The five edits: none is GPT-2's block, all are Llama's, each does what it says, and published sizes agree."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.block import TransformerBlock
from course_lib.feed_forward import matched_hidden_size
from course_lib.masks import causal_mask
from course_lib.models.gpt import GPT
from course_lib.models.llama import (
    ALL_EDITS,
    BlockSizes,
    EditedBlock,
    EditedGPT,
    Edits,
    one_after_another,
    sizes_for,
)
from course_lib.rotary import apply_rotary

TOLERANCE = 1e-5
SIZES = BlockSizes(d_model=24, num_heads=6, d_ff=40, kv_heads=2)


def test_without_an_edit_it_is_the_block_of_gpt_2():
    torch.manual_seed(0)
    ours, x = EditedBlock(SIZES, Edits()), torch.randn(2, 7, 24)
    theirs = TransformerBlock(24, 6, 40, norm_first=True, activation="gelu")
    theirs.load_state_dict(ours.state_dict())
    mask = causal_mask(7)
    torch.testing.assert_close(ours(x, mask), theirs(x, mask), rtol=0, atol=TOLERANCE)


def test_with_all_edits_it_is_llamas_block_written_out_head_by_head():
    torch.manual_seed(0)
    block, x = EditedBlock(SIZES, ALL_EDITS), torch.randn(2, 7, 24)
    for norm in (block.norm_1, block.norm_2):
        nn.init.normal_(norm.weight, mean=1.0)
    read = F.rms_norm(x, (24,), block.norm_1.weight, 1e-5)
    query, key, value = (
        projection(read) for projection in (block.attention.w_q, block.attention.w_k, block.attention.w_v)
    )
    places, found = torch.arange(7), []
    for head in range(6):
        group = head // 3
        q = apply_rotary(query[..., 4 * head : 4 * head + 4], places)
        k = apply_rotary(key[..., 4 * group : 4 * group + 4], places)
        v = value[..., 4 * group : 4 * group + 4]
        found.append(F.scaled_dot_product_attention(q, k, v, is_causal=True))
    x_middle = x + torch.cat(found, dim=-1) @ block.attention.w_o.weight.T
    read = F.rms_norm(x_middle, (24,), block.norm_2.weight, 1e-5)
    gated = F.silu(block.ffn.gate(read)) * block.ffn.up(read)
    expected = x_middle + block.ffn.down(gated)
    torch.testing.assert_close(block(x, causal_mask(7)), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("edits", one_after_another(), ids=lambda edits: edits.names[-1] if edits.names else "none")
def test_after_each_edit_the_model_is_causal_and_everything_learns(edits):
    torch.manual_seed(0)
    model = EditedGPT(31, 2, 9, SIZES, edits)
    tokens = torch.randint(31, (2, 9))
    before = model(tokens)
    changed = tokens.clone()
    changed[:, 6] = (changed[:, 6] + 1) % 31
    moved = (model(changed) - before).abs().amax((0, 2)) > 0
    assert moved.tolist() == [False] * 6 + [True] * 3
    before.square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in model.parameters())


def test_the_edits_come_one_at_a_time():
    path = one_after_another()
    assert path[0] == Edits()
    assert path[-1] == ALL_EDITS
    assert [len(edits.names) for edits in path] == list(range(6))


def test_no_biases_leaves_only_matrices_and_gains():
    block = EditedBlock(SIZES, Edits(no_biases=True))
    assert not any(name.endswith("bias") for name, _ in block.named_parameters())
    assert any(name.endswith("bias") for name, _ in EditedBlock(SIZES, Edits()).named_parameters())


def test_rotary_positions_depend_on_distance_alone():
    torch.manual_seed(0)
    attention = EditedBlock(SIZES, Edits(rotary=True)).attention
    x = torch.randn(1, 5, 24)
    late = attention(torch.cat([torch.zeros(1, 3, 24), x], dim=1), torch.arange(8)[None, :].expand(8, 8) < 3)[:, 3:]
    torch.testing.assert_close(late, attention(x), rtol=0, atol=TOLERANCE)
    swapped = attention(x[:, [1, 0, 2, 3, 4]])
    assert (swapped[:, 4] - attention(x)[:, 4]).abs().max() > 100 * TOLERANCE


def test_the_gate_keeps_the_number_of_weights():
    plain, gated = (sizes_for(24, 6, 2, edits) for edits in (Edits(), Edits(swiglu=True)))
    assert plain.d_ff == 96
    assert gated.d_ff == matched_hidden_size(24, 96) == 64
    weights = [
        sum(w.numel() for w in EditedBlock(s, e).ffn.parameters())
        for s, e in ((plain, Edits(no_biases=True)), (gated, Edits(no_biases=True, swiglu=True)))
    ]
    assert weights[0] == weights[1]


def test_without_an_edit_the_model_is_gpt():
    torch.manual_seed(0)
    theirs = GPT(31, 24, num_heads=6, num_layers=2, max_length=9)
    ours = EditedGPT(31, 2, 9, sizes_for(24, 6, 2, Edits()), Edits())
    ours.load_state_dict(theirs.state_dict())
    tokens = torch.randint(31, (2, 9))
    torch.testing.assert_close(ours(tokens), theirs(tokens), rtol=0, atol=TOLERANCE)


PUBLISHED = {
    "Llama 2, 7 B": (32, BlockSizes(4096, 32, 11008, 32), 6_738_415_616),
    "Mistral 7 B": (32, BlockSizes(4096, 32, 14336, 8), 7_241_732_096),
    "TinyLlama 1.1 B": (22, BlockSizes(2048, 32, 5632, 4), 1_100_048_384),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_sizes(name):
    num_layers, sizes, published = PUBLISHED[name]
    with torch.device("meta"):
        model = EditedGPT(32000, num_layers, 4096, sizes, ALL_EDITS, tied=False)
    assert sum(weight.numel() for weight in model.parameters()) == published


def test_key_heads_that_do_not_divide_the_query_heads_are_refused():
    with pytest.raises(ValueError, match="`kv_heads` must divide `num_heads`: 4 key heads"):
        EditedBlock(BlockSizes(24, 6, 40, 4), ALL_EDITS)


def test_too_long_a_sequence_is_refused():
    with pytest.raises(ValueError, match="`tokens` has 10 places"):
        EditedGPT(31, 1, 9, SIZES, Edits())(torch.zeros(1, 10, dtype=torch.long))
