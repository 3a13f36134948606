"""Exponents are those of the power that made the costs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.scaling import local_exponents, scaling_exponent

TOLERANCE = 1e-9
SIZES = [16, 40, 64, 200, 1024]


@given(st.floats(-3, 3), st.floats(1e-9, 1e9))
def test_the_exponent_of_a_power_is_found_whatever_its_factor(power, factor):
    costs = [factor * size**power for size in SIZES]
    assert scaling_exponent(SIZES, costs) == pytest.approx(power, abs=TOLERANCE)


@given(st.lists(st.floats(0.1, 100), min_size=5, max_size=5))
def test_the_fit_is_that_of_numpys_polynomial_of_the_logarithms(costs):
    slope, _ = np.polyfit(np.log(SIZES), np.log(costs), 1)
    assert scaling_exponent(SIZES, costs) == pytest.approx(slope, abs=TOLERANCE)


def test_the_order_of_the_sizes_plays_no_part():
    costs = [3.0, 1.0, 4.0, 1.5, 9.0]
    assert scaling_exponent(SIZES[::-1], costs[::-1]) == pytest.approx(scaling_exponent(SIZES, costs), abs=TOLERANCE)


def test_a_fixed_cost_hides_the_exponent_at_small_sizes_only():
    costs = [1e6 + size**2 for size in SIZES]
    found = local_exponents(SIZES, costs)
    assert len(found) == len(SIZES) - 1
    assert found[0] < 0.01
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("sizes", "costs", "words"),
    [
        ([1, 2], [1, 2, 3], "each size needs one cost"),
        ([2], [3], "at least two"),
        ([2, 2], [3, 4], "at least two"),
        ([1, 2], [0, 1], "`costs` must be a list of positive"),
        ([-1, 2], [1, 1], "`sizes` must be a list of positive"),
        ([[1, 2]], [[1, 1]], "`sizes` must be a list"),
    ],
)
def test_what_has_no_exponent_is_refused(sizes, costs, words):
    with pytest.raises(ValueError, match=words):
        scaling_exponent(sizes, costs)
