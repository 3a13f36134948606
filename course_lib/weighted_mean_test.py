import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays

from course_lib.weighted_mean import weighted_mean

VALUES = arrays(np.float64, 5, elements=some.floats(-100, 100))
WEIGHTS = arrays(np.float64, 5, elements=some.floats(0.01, 100))


@given(VALUES, WEIGHTS)
def test_it_is_numpys_weighted_average(values: np.ndarray, weights: np.ndarray) -> None:
    assert weighted_mean(values, weights) == pytest.approx(np.average(values, weights=weights), abs=1e-9)


@given(VALUES, WEIGHTS)
def test_it_lies_between_the_least_and_the_greatest(values: np.ndarray, weights: np.ndarray) -> None:
    assert values.min() - 1e-9 <= weighted_mean(values, weights) <= values.max() + 1e-9


def test_weights_count_by_their_shares_alone() -> None:
    values, weights = np.array([1.0, 5.0]), np.array([3.0, 1.0])
    assert weighted_mean(values, weights) == weighted_mean(values, 10 * weights) == 2.0


@pytest.mark.parametrize(("weights", "words"), [([1.0], "one weight"), ([1.0, -1.0], "sum to 0")])
def test_weights_that_cannot_serve_are_refused(weights: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        weighted_mean(np.array([1.0, 2.0]), np.array(weights))
