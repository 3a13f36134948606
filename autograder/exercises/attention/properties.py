"""What holds for every right attention, whatever its form."""

from __future__ import annotations

import numpy as np

from autograder.program import Program, Run

ROW_SUM_TOLERANCE = 1e-2  # coarse on purpose: it only picks the sentence, the values decide


def rows_sum_to_one(weights: np.ndarray) -> str | None:
    """Give a sentence when a row of weights does not sum to 1 (or to 0, when all is hidden)."""
    if not np.isfinite(weights).all():
        return None
    if (weights < 0).any():
        return "some weights are negative, but a weight is a share of attention: did the softmax run?"
    sums = np.asarray(weights, dtype=float).sum(-1)
    wrong = ~(np.isclose(sums, 1, atol=ROW_SUM_TOLERANCE) | (sums == 0))
    if not wrong.any():
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"row {', '.join(map(str, first))} of your weights sums to {sums[first]:.3g}, but every row should sum to 1"


def weights_of_a_pair(program: Program, found: Run) -> str | None:
    """Look at the weights of an `(output, weights)` pair."""
    _, weights = found.outcomes[0]
    return rows_sum_to_one(weights)


def weights_alone(program: Program, found: Run) -> str | None:
    """Look at a result that is the weights themselves."""
    return rows_sum_to_one(found.outcomes[0])


def dtype_kept(program: Program, found: Run) -> str | None:
    """Look for a result that is wider than every input."""
    arrays = [value for value in program.steps[0].args if isinstance(value, np.ndarray) and value.dtype.kind == "f"]
    widest = np.result_type(*arrays)
    outcome = found.outcomes[0]
    results = outcome if isinstance(outcome, (tuple, list)) else (outcome,)
    if not all(isinstance(result, (np.ndarray, np.generic)) for result in results):
        return None
    came = np.result_type(*results)
    if came.kind != "f" or came.itemsize <= widest.itemsize:
        return None
    return (
        f"your result is {came}, but the inputs are {widest}: an array or a NumPy number of that dtype came in on "
        "the way (`np.sqrt(64)`, `np.eye(3)` and `np.zeros(3)` all are float64)"
    )
