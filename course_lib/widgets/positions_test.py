"""The explorer of waves: what it shows is what the encodings compute."""

import math
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.positions import sinusoidal_encoding
from course_lib.rotary import apply_rotary
from course_lib.widgets.positions import LENGTHS, WIDTHS, draw, position_explorer, score, turns

SVG = "{http://www.w3.org/2000/svg}"


def test_the_score_is_the_product_of_two_encodings_and_of_two_turned_vectors():
    encoding = sinusoidal_encoding(30, 16, 500.0)
    np.testing.assert_allclose(score(np.arange(30), 16, 500.0), encoding @ encoding[0] / 8)
    ones = torch.full((30, 16), 0.25, dtype=torch.float64)
    turned = apply_rotary(ones, torch.arange(30), 500.0)
    np.testing.assert_allclose(score(np.arange(30), 16, 500.0), turned @ turned[0])


def test_the_first_pair_turns_in_two_pi_positions_and_low_bases_turn_more_pairs():
    assert turns(16, 1e6, 6) == 0
    assert turns(16, 1e6, 7) == 1
    assert turns(16, 10.0, 1024) == 8


def test_the_words_name_the_ends_the_turns_and_the_score():
    words = position_explorer().describe(base=100.0, d_head=8, trained_length=64, distance=5.0)
    assert f"Base 100, 4 pairs: wavelengths from 6.3 to {2 * math.pi * 100**0.75:.1f} positions" in words
    assert "3 of 4 pairs turn all the way round" in words
    assert f"{float(score(5.0, 8, 100.0)):.2f} at distance 5" in words


@given(st.floats(8, 2**20), st.sampled_from(WIDTHS), st.sampled_from(LENGTHS), st.floats(0, 256))
def test_every_setting_gives_a_sound_picture_with_its_words(base, d_head, trained_length, distance):
    image, words = draw(base, d_head, trained_length, distance)
    root = ElementTree.fromstring(image)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}desc") == words
    assert "nan" not in image


def test_scores_never_exceed_that_of_distance_zero():
    assert score(0.0, 32, 1e4) == pytest.approx(1)
    assert np.abs(score(np.linspace(0, 500, 99), 32, 1e4)).max() <= 1
