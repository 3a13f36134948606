"""The first explorer: what it shows is what attention computes."""

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.attention import scaled_dot_product_attention
from course_lib.widgets.attention import KEYS, attend, attention_explorer, draw

PLACES = np.array(list(KEYS.values()))
SVG = "{http://www.w3.org/2000/svg}"
settings_of_the_sliders = {
    "query_x": st.floats(-2.5, 2.5),
    "query_y": st.floats(-2.5, 2.5),
    "temperature": st.floats(0.125, 8),
    "d_k": st.sampled_from([2, 64, 1024]),
    "divide": st.booleans(),
}


def told_weights(text):
    return [float(number) for number in re.findall(r"[A-E] (\d\.\d\d)", text)]


def test_the_words_and_the_bars_hold_the_weights_of_attention():
    image, text = draw(query_x=1.0, query_y=0.5, temperature=1.0, d_k=64, divide=True)
    output, weights = scaled_dot_product_attention(np.array([[1.0, 0.5]]), PLACES, PLACES)
    expected = [f"{weight:.2f}" for weight in weights[0]]
    assert told_weights(text) == [float(number) for number in expected]
    assert f"Output at ({output[0, 0]:.2f}, {output[0, 1]:.2f})." in text
    written = [element.text for element in ElementTree.fromstring(image).iter(f"{SVG}text")]
    assert set(expected) <= set(written)


def test_wide_vectors_equal_attention_over_repeated_independent_features_in_spread():
    d_k = 16
    weights, _, _ = attend(0.7, -0.4, temperature=1.0, d_k=d_k, divide=False)
    scores = PLACES @ [0.7, -0.4] * math.sqrt(d_k / 2)
    expected = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(weights, expected, rtol=1e-12)


def test_dividing_makes_the_width_irrelevant_and_not_dividing_sharpens():
    entropies = {divide: [attend(1.0, 0.5, 1.0, d_k, divide)[2] for d_k in (2, 64, 1024)] for divide in (True, False)}
    assert entropies[True] == pytest.approx([entropies[True][0]] * 3)
    assert entropies[False][0] > entropies[False][1] > entropies[False][2]


def test_a_query_at_the_origin_looks_equally_at_all_keys():
    _, output, entropy = attend(0.0, 0.0, 1.0, 64, True)
    np.testing.assert_allclose(output, PLACES.mean(axis=0), atol=1e-12)
    assert entropy == pytest.approx(math.log(len(KEYS)))


@given(st.fixed_dictionaries(settings_of_the_sliders))
def test_every_setting_gives_a_sound_picture_and_finite_words(values):
    image, text = draw(**values)
    weights, output, entropy = attend(**values)
    assert weights.sum() == pytest.approx(1)
    assert -1e-9 <= entropy <= math.log(len(KEYS)) + 1e-9
    assert (PLACES.min(0) - 1e-9 <= output).all()
    assert (output <= PLACES.max(0) + 1e-9).all()
    root = ElementTree.fromstring(image)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}desc") == text
    assert text in (root.get("aria-label") or "")
    assert "nan" not in image


def test_the_explorer_starts_with_what_it_tells():
    explorer = attention_explorer()
    assert explorer.describe() == draw(**explorer.start)[1]
    assert "not divided by √64" in explorer.describe(divide=False)
