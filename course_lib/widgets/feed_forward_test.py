"""The explorer shows what a network with those units computes."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.feed_forward import gelu, position_wise_ffn, relu
from course_lib.widgets.feed_forward import (
    ACTIVATIONS,
    GRID_POINTS,
    TARGETS,
    draw,
    feed_forward_explorer,
    fit,
    hidden,
)

SVG = "{http://www.w3.org/2000/svg}"
START = feed_forward_explorer().start


@pytest.mark.parametrize(("name", "function"), [("ReLU", relu), ("GELU", gelu)])
def test_the_told_output_is_that_of_the_feed_forward_network(name, function):
    units, shift, token = 8, -0.5, 1.2
    weights, _ = fit("step", units, name, shift)
    directions = np.array([1.0, -1.0] * 4)
    kinks = np.linspace(-3, 3, 2 * units + 1)[1::2]
    found = position_wise_ffn(
        np.array([[token]]), directions[None], shift - directions * kinks, weights[:-1, None], weights[-1:], function
    )
    text = draw("step", units, name, shift, token)[1]
    assert f"the network gives {found[0, 0]:.2f}" in text


def test_more_units_leave_less_error():
    errors = [fit("wave", units, "ReLU", 0.0)[1] for units in (1, 4, 16)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.1


def test_without_an_activation_any_number_of_units_draws_a_line():
    one, many = (fit("hat", units, "none", 0.0) for units in (1, 32))
    assert one[1] == pytest.approx(many[1], abs=1e-3)
    assert one[1] > 0.9


def test_low_biases_kill_relu_units_and_only_dampen_gelu_units():
    assert "8 of 8 are dead" in draw("wave", 8, "ReLU", -7.0, 0.5)[1]
    assert (hidden(GRID_POINTS, 8, "ReLU", -7.0) == 0).all()
    assert "0 of 8 are dead" in draw("wave", 8, "GELU", -4.0, 0.5)[1]
    assert fit("wave", 8, "ReLU", -7.0)[1] == pytest.approx(1)


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "target": st.sampled_from(list(TARGETS)),
            "units": st.sampled_from([1, 2, 8, 32]),
            "activation": st.sampled_from(list(ACTIVATIONS)),
            "shift": st.floats(-7, 2),
            "token": st.floats(-3, 3),
        }
    )
)
def test_every_setting_gives_a_sound_picture_and_finite_words(values):
    image, text = draw(**values)
    root = ElementTree.fromstring(image)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}desc") == text
    assert "nan" not in image + text
    error = re.search(r"Error (\d+\.\d\d)", text)
    assert error is not None
    assert 0 <= float(error[1]) <= 1.01


def test_the_explorer_starts_with_what_it_tells():
    assert feed_forward_explorer().describe() == draw(**START)[1]
    assert "16 GELU units on the wave" in feed_forward_explorer().describe(units=16, activation="GELU")
