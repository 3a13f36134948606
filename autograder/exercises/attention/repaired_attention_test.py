"""The faults of the hunt are silent on the data of a first try."""

import numpy as np
import pytest

from autograder.exercises.attention.repaired_attention import exercise
from course_lib import attention


def test_the_starter_of_the_hunt_runs_on_the_data_of_a_first_try_and_is_right_there() -> None:
    case = next(case for case in exercise.cases if case.name == "4 tokens of width 2")
    args = exercise.program(case, seed=3).steps[0].args
    starter = exercise.misconceptions["starter_unchanged"].function
    for ours, theirs in zip(attention.scaled_dot_product_attention(*args), starter(*args), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-12)


@pytest.mark.parametrize("belief", ["transpose_left", "axis_left"])
def test_the_faults_of_the_hunt_are_silent_where_all_sizes_are_equal(belief) -> None:
    case = next(case for case in exercise.cases if case.name == "4 sequences of 4 tokens of width 4")
    args = exercise.program(case, seed=3).steps[0].args
    output, _ = exercise.misconceptions[belief].function(*args)
    expected, _ = attention.scaled_dot_product_attention(*args)
    assert output.shape == expected.shape
    assert np.isfinite(output).all()
    assert not np.allclose(output, expected)
