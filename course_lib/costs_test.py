"""Costs agree to the unit with real modules, with the framework's FLOP counter and with counted bytes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.block import TransformerBlock
from course_lib.costs import (
    attention_flops,
    attention_matrix_bytes,
    block_flops,
    block_flops_by_part,
    block_parameter_count,
    crossover_length,
    kv_cache_bytes,
    recurrent_parameter_count,
    sequential_depth,
)
from course_lib.feed_forward import feed_forward_cost
from course_lib.flop_counter import counted_flops, counted_parameters
from course_lib.memory import allocated_shapes
from course_lib.models.recurrent import recurrent_layer
from course_lib.multi_head import MultiHeadAttention, attention_parameter_count, split_heads

sizes = st.integers(1, 60)
META = torch.device("meta")


@pytest.mark.parametrize("num_heads", [1, 3, 6])
def test_parameters_of_a_block_equal_those_of_the_real_one_for_any_number_of_heads(num_heads):
    block = TransformerBlock(18, num_heads, 41)
    assert block_parameter_count(18, 41) == counted_parameters(block)
    framework = nn.TransformerEncoderLayer(18, num_heads, 41)
    assert block_parameter_count(18, 41) == counted_parameters(framework)


def test_parameters_without_biases_equal_those_of_the_framework_whose_norms_keep_their_gains():
    framework = nn.TransformerEncoderLayer(18, 3, 41, bias=False)
    norm_biases = 2 * 18  # the framework drops these as well; the contract keeps them
    assert block_parameter_count(18, 41, bias=False) == counted_parameters(framework) + norm_biases


@given(sizes, sizes)
def test_parameters_are_those_of_the_parts(d_model, d_ff):
    attention = attention_parameter_count(d_model, 1)
    feed_forward, _ = feed_forward_cost(1, d_model, d_ff)
    assert block_parameter_count(d_model, d_ff) == attention + feed_forward + 4 * d_model


def test_gpt2_and_bert_blocks_have_their_published_size():
    # 7,087,872 in each of the 12 blocks of GPT-2 small and of BERT base
    assert block_parameter_count(768, 3072) == 7_087_872


@pytest.mark.parametrize(("n_q", "n_k", "num_heads"), [(5, 9, 1), (9, 5, 2), (7, 7, 4), (1, 30, 4)])
def test_attention_flops_equal_the_frameworks_count_for_any_number_of_heads(n_q, n_k, num_heads):
    layer = MultiHeadAttention(24, num_heads)
    query, memory = torch.ones(1, n_q, 24), torch.ones(1, n_k, 24)
    assert attention_flops(n_q, n_k, 24) == counted_flops(layer, query, memory, memory)


@pytest.mark.parametrize(("sequence", "d_model", "d_ff"), [(12, 24, 96), (100, 64, 200), (300, 16, 10)])
def test_block_flops_equal_the_frameworks_count_on_our_block_and_on_its_own(sequence, d_model, d_ff):
    x = torch.ones(1, sequence, d_model)
    expected = block_flops(sequence, d_model, d_ff)
    assert counted_flops(TransformerBlock(d_model, 4, d_ff), x) == expected
    assert counted_flops(nn.TransformerEncoderLayer(d_model, 4, d_ff, batch_first=True), x) == expected


def test_block_flops_of_a_block_too_large_to_run_are_counted_without_running_it():
    with META:
        block, x = TransformerBlock(4096, 32, 16384), torch.empty(1, 8192, 4096)
    assert counted_flops(block, x) == block_flops(8192, 4096, 16384)


@given(sizes, sizes, sizes)
def test_parts_of_a_block_sum_to_the_whole(sequence, d_model, d_ff):
    parts = block_flops_by_part(sequence, d_model, d_ff)
    assert parts.total == block_flops(sequence, d_model, d_ff)
    assert parts.projections + parts.attention == attention_flops(sequence, sequence, d_model)
    assert parts.feed_forward == feed_forward_cost(sequence, d_model, d_ff)[1]
    assert 0 < parts.attention_share < 1


@given(sizes, sizes)
def test_the_crossover_is_the_first_length_at_which_the_quadratic_part_is_the_larger(d_model, d_ff):
    def quadratic_wins(sequence):
        parts = block_flops_by_part(sequence, d_model, d_ff)
        return parts.attention > parts.projections + parts.feed_forward

    n = crossover_length(d_model, d_ff)
    assert quadratic_wins(n)
    assert not quadratic_wins(n - 1)


def test_with_the_usual_width_the_crossover_follows_six_times_the_model_width():
    assert crossover_length(768, 4 * 768) == 6 * 768 + 1


def test_bytes_of_the_weights_are_those_of_the_tensor_that_a_layer_allocates():
    layer, x = MultiHeadAttention(12, 3), torch.ones(2, 7, 12)
    shape = (2, 3, 7, 7)
    assert shape in allocated_shapes(layer, x, x, x)
    assert attention_matrix_bytes(2, 3, 7) == torch.empty(shape).nbytes
    assert attention_matrix_bytes(2, 3, 7, itemsize=2) == torch.empty(shape, dtype=torch.float16).nbytes


def test_bytes_of_a_cache_are_those_of_its_tensors():
    layers, kv_heads, d_head, sequence, batch = 3, 2, 5, 7, 4
    kept = [
        split_heads(torch.ones(batch, sequence, kv_heads * d_head, dtype=torch.bfloat16), kv_heads).contiguous()
        for _ in range(2 * layers)
    ]
    assert kv_cache_bytes(layers, kv_heads, d_head, sequence, batch) == sum(tensor.nbytes for tensor in kept)


@pytest.mark.parametrize(("sequence", "layers"), [(1, 1), (1, 5), (6, 1), (6, 4), (3, 9)])
def test_sequential_depth_is_the_longest_chain_of_the_table_of_dependencies(sequence, layers):
    def longest(depends):
        depth = {}
        for step in range(sequence):
            for layer in range(layers):
                before = [depth[cell] for cell in depends(step, layer) if cell in depth]
                depth[step, layer] = 1 + max(before, default=0)
        return max(depth.values())

    assert sequential_depth("rnn", sequence, layers) == longest(lambda t, i: [(t - 1, i), (t, i - 1)])
    assert sequential_depth("transformer", sequence, layers) == longest(
        lambda t, i: [(u, i - 1) for u in range(sequence)]
    )
    assert sequential_depth("decode", sequence, layers) == longest(
        lambda t, i: [(t, i - 1) if i else (t - 1, layers - 1)]
    )


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_recurrent_parameters_equal_those_of_the_frameworks_layer(kind):
    assert recurrent_parameter_count(kind, 128, 256) == counted_parameters(recurrent_layer(kind, 128, 256))


@settings(max_examples=20)
@given(st.integers(-3, 0))
def test_sizes_below_one_are_refused_by_name(bad):
    for function, arguments, name in (
        (block_parameter_count, (bad, 4), "d_model"),
        (attention_flops, (2, bad, 4), "n_k"),
        (block_flops, (2, 4, bad), "d_ff"),
        (crossover_length, (bad, 4), "d_model"),
        (attention_matrix_bytes, (1, bad, 4), "heads"),
        (kv_cache_bytes, (1, 1, 1, bad), "sequence"),
        (sequential_depth, ("rnn", bad, 1), "sequence"),
        (recurrent_parameter_count, ("gru", bad, 1), "d_in"),
    ):
        with pytest.raises(ValueError, match=f"`{name}` must be at least 1"):
            function(*arguments)


def test_unknown_kinds_are_refused_with_a_list():
    with pytest.raises(ValueError, match="'rnn', 'transformer', 'decode', got 'cnn'"):
        sequential_depth("cnn", 3, 3)
    with pytest.raises(ValueError, match="'rnn', 'gru', 'lstm', got 'cnn'"):
        recurrent_parameter_count("cnn", 3, 3)
