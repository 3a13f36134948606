"""Counts are those of the operations that ran."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from course_lib.flop_counter import counted_flops, counted_parameters, graph_depth
from course_lib.models.recurrent import rnn_forward


def test_a_product_counts_two_for_every_multiply_add():
    assert counted_flops(torch.matmul, torch.ones(3, 5), torch.ones(5, 7)) == 2 * 3 * 5 * 7


def test_fused_attention_is_counted_although_the_plain_counter_misses_it():
    tensors = [torch.ones(1, 2, 64, 16) for _ in range(3)]
    with FlopCounterMode(display=False) as plain, torch.no_grad():
        F.scaled_dot_product_attention(*tensors)
    expected = 2 * 2 * 2 * 64 * 64 * 16
    assert plain.get_total_flops() != expected
    assert counted_flops(F.scaled_dot_product_attention, *tensors) == expected


def test_the_backward_pass_costs_twice_the_forward_pass():
    layer, x = nn.Linear(6, 8), torch.ones(4, 6, requires_grad=True)
    assert counted_flops(lambda: layer(x).sum().backward()) == 3 * counted_flops(layer, x)


def test_a_shared_weight_counts_once():
    first = nn.Linear(3, 4, bias=False)
    second = nn.Linear(3, 4, bias=False)
    second.weight = first.weight
    assert counted_parameters(nn.Sequential(first, second)) == 12


def test_depth_follows_the_longest_path_and_not_the_number_of_operations():
    x = torch.ones(3, requires_grad=True)
    chain = x.sin().sin().sin()
    wide = x.cos() + x.cos() + x.cos()
    assert graph_depth(chain) == 1 + 3  # the leaf's own node counts
    assert graph_depth(wide + chain) == graph_depth(chain) + 1


def test_depth_of_a_recurrent_network_grows_by_the_same_steps_with_every_token_and_without_recursion():
    w_x, w_h, b = (torch.ones(shape, requires_grad=True) for shape in ((2, 3), (3, 3), (3,)))
    depths = [graph_depth(rnn_forward(torch.ones(1, n, 2), w_x, w_h, b)) for n in (10, 20, 3000)]
    per_token = (depths[1] - depths[0]) / 10
    assert depths[2] == depths[0] + per_token * 2990


def test_a_tensor_without_a_graph_is_refused():
    with pytest.raises(ValueError, match="requires_grad"):
        graph_depth(torch.ones(1))
