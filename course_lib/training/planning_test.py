"""A plan keeps the totals: what is split adds up, and what is copied is counted again."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.activation_memory import activation_bytes
from course_lib.block import TransformerBlock
from course_lib.flop_counter import counted_parameters
from course_lib.training.parallel import ring_all_reduce_bytes
from course_lib.training.planning import Layout, Model, fit, plan

SMALL = Model(layers=8, d_model=64, heads=8, sequence=32, batch=64)
powers = st.sampled_from([1, 2, 4, 8])
layouts = st.builds(Layout, powers, powers, powers, powers, powers, st.booleans())


def test_one_device_holds_sixteen_bytes_per_parameter_and_the_activations_of_the_formula():
    found = plan(SMALL, Layout())
    with torch.device("meta"):
        parameters = SMALL.layers * counted_parameters(TransformerBlock(64, 8, 256))
    assert found.parameters == parameters
    assert found.weights + found.optimizer == 16 * parameters
    assert found.activations == activation_bytes(64, 32, 64, 8, 8)
    assert found.traffic == 0
    assert found.bubble == 0


@given(layouts)
def test_every_layout_that_fits_gives_a_plan_in_which_nothing_is_negative(layout):
    found = plan(SMALL, fit(SMALL, layout))
    for name in ("weights", "optimizer", "activations", "data_traffic", "tensor_traffic", "expert_traffic"):
        assert getattr(found, name) >= 0
    assert 0 <= found.bubble < 1


@pytest.mark.parametrize("split", ["tensor", "pipeline"])
def test_splitting_the_model_splits_its_states(split):
    whole, half = plan(SMALL, Layout()), plan(SMALL, Layout(**{split: 2}))
    assert half.weights == pytest.approx(whole.weights / 2)
    assert half.optimizer == pytest.approx(whole.optimizer / 2)
    assert half.parameters == whole.parameters


def test_data_parallel_copies_the_states_and_reduces_the_gradients():
    found = plan(SMALL, Layout(data=4))
    assert found.weights == plan(SMALL, Layout()).weights
    assert found.activations == plan(SMALL, Layout()).activations / 4
    assert found.traffic == ring_all_reduce_bytes(2 * found.parameters, 4)


def test_tensor_parallel_sends_four_reduces_of_the_tokens_per_layer():
    found = plan(SMALL, Layout(tensor=4))
    tokens = 64 * 32 * 64 * 2
    assert found.traffic == pytest.approx(8 * 4 * ring_all_reduce_bytes(tokens, 4))


def test_microbatches_change_the_bubble_and_not_the_traffic():
    few, many = (plan(SMALL, Layout(pipeline=4, tensor=2, microbatches=m)) for m in (4, 16))
    assert few.traffic == many.traffic
    assert few.bubble == 3 / 7
    assert many.bubble == 3 / 19
    assert many.activations < few.activations


def test_experts_multiply_the_parameters_and_not_what_a_device_holds():
    one, four = plan(SMALL, Layout()), plan(SMALL, Layout(expert=4))
    assert four.weights == one.weights
    assert four.parameters > 2.5 * one.parameters
    assert four.expert_traffic > 0


def test_checkpointing_trades_memory_for_traffic():
    plain, saving = (plan(SMALL, Layout(tensor=2, checkpointing=c)) for c in (False, True))
    assert saving.activations < plain.activations
    assert saving.tensor_traffic == 1.5 * plain.tensor_traffic


def test_what_cannot_be_shared_evenly_is_refused_and_fit_lowers_it():
    with pytest.raises(ValueError, match="`layers` is 8"):
        plan(SMALL, Layout(pipeline=16))
    assert fit(SMALL, Layout(pipeline=16, data=128)) == Layout(pipeline=8, data=64)
