"""The explorer tells the costs that the formulas give, and the measurements that it was handed."""

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.block import TransformerBlock
from course_lib.costs import block_flops, block_parameter_count
from course_lib.flop_counter import counted_parameters
from course_lib.widgets.costs import (
    ASSUMED_RATE,
    HEADS,
    LAYERS,
    LENGTHS,
    WIDTHS,
    best_rate,
    cost_bars,
    costs_explorer,
    draw,
    predicted_seconds,
)

SVG = "{http://www.w3.org/2000/svg}"
values = st.fixed_dictionaries(
    {
        "sequence": st.sampled_from(LENGTHS),
        "d_model": st.sampled_from(WIDTHS),
        "layers": st.sampled_from(LAYERS),
        "heads": st.sampled_from(HEADS),
    }
)


def total(bars, name):
    return sum(amount for _, amount in bars[name])


def test_the_bars_of_a_small_stack_are_those_of_real_blocks():
    bars = cost_bars(sequence=32, d_model=64, layers=2, heads=4)
    blocks = [TransformerBlock(64, 4, 256) for _ in range(2)]
    parameters = sum(counted_parameters(block) for block in blocks)
    assert total(bars, "parameters") == parameters
    assert total(bars, "FLOPs of a forward pass") == 2 * block_flops(32, 64, 256)
    assert total(bars, "bytes in float32") == 4 * parameters + 2 * 4 * 4 * 32**2 + 4 * 2 * 2 * 32 * 64


@given(values)
def test_heads_change_the_maps_and_nothing_else(settings_drawn):
    one, many = (cost_bars(**{**settings_drawn, "heads": heads}) for heads in (1, 64))
    maps = [dict(bars["bytes in float32"])["n × n maps"] for bars in (one, many)]
    assert maps[1] == 64 * maps[0]
    for bars in (one, many):
        bars["bytes in float32"] = [piece for piece in bars["bytes in float32"] if piece[0] != "n × n maps"]
    assert one == many


@settings(deadline=None)
@given(values, st.booleans())
def test_every_setting_gives_a_sound_picture_and_finite_words(settings_drawn, any_measured):
    measured = {(256, 512): 0.02, (256, 16): 1e-4} if any_measured else None
    image, text = draw(**settings_drawn, measured=measured)
    root = ElementTree.fromstring(image)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}desc") == text
    assert "nan" not in image + text
    assert "inf" not in image + text
    circles = root.findall(f".//{SVG}circle")
    assert len(circles) == 1
    for name, low, high in (("cx", 425, 680), ("cy", 44, 300)):
        assert low - 0.1 <= float(circles[0].get(name, "nan")) <= high + 0.1


def test_a_measurement_at_the_chosen_width_becomes_a_dot_and_a_sentence():
    measured = {(128, 64): 0.5, (128, 1024): 2.0, (256, 64): 1.0}
    explorer = costs_explorer(measured)
    assert explorer.start["d_model"] == 128
    text = explorer.describe(sequence=1024)
    assert "Measured: 2 s, 1 times as long" in text  # the one at the best rate lies on the line
    assert "Measured at this width: 2 lengths from 64 to 1024" in explorer.describe(sequence=512)
    assert "Nothing was measured" in explorer.describe(d_model=4096)
    image, _ = explorer.draw(**explorer.start)
    assert image.count("<polygon") == 2 + 1  # two dots and the one of the legend


def test_the_best_rate_is_reached_by_a_measurement_and_bounds_all():
    measured = {(64, 16): 1e-3, (64, 512): 5e-3}
    rate = best_rate(measured)
    for (d_model, sequence), seconds in measured.items():
        assert predicted_seconds(sequence, d_model, 1, rate) <= seconds * (1 + 1e-12)
    assert rate == block_flops(512, 64, 256) / 5e-3
    assert best_rate({}) == ASSUMED_RATE


def test_layers_multiply_prediction_and_measurement_alike():
    measured = {(64, 512): 5e-3}
    one, six = (draw(512, 64, layers, 4, measured=measured, rate=1e9)[1] for layers in (1, 6))
    assert one.split("times as long")[0].rsplit(", ")[-1] == six.split("times as long")[0].rsplit(", ")[-1]
    assert "Measured: 5 ms" in one
    assert "Measured: 30 ms" in six


@pytest.mark.parametrize("d_model", WIDTHS)
def test_parts_of_the_parameters_sum_to_the_block(d_model):
    assert total(cost_bars(16, d_model, 1, 1), "parameters") == block_parameter_count(d_model, 4 * d_model)
