"""Contrast against the values that the guideline itself gives."""

from itertools import pairwise

import matplotlib
import numpy as np
import pytest

from course_lib.colors import COLORS, INK, LEAST_CONTRAST, QUIET, contrast, readable_ink


def test_contrast_of_black_and_white_is_the_largest_there_is():
    assert contrast("black", "white") == pytest.approx(21)
    assert contrast("white", "black") == pytest.approx(21)
    assert contrast("#777777", "#777777") == 1


def test_the_gray_that_just_passes_on_white_is_the_known_one():
    assert contrast("#767676", "white") >= LEAST_CONTRAST > contrast("#777777", "white")


def test_text_on_every_shade_of_a_heat_map_is_readable():
    shades = matplotlib.colormaps["Blues"]
    for weight in np.linspace(0, 1, 101):
        shade = shades(float(weight))
        assert contrast(readable_ink(shade), shade) >= LEAST_CONTRAST


def test_words_on_white_are_readable():
    assert contrast(INK, "white") >= LEAST_CONTRAST
    assert contrast(QUIET, "white") >= LEAST_CONTRAST


def test_no_two_colors_of_the_palette_are_the_same():
    assert all(first < second for first, second in pairwise(sorted(COLORS)))
