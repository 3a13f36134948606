"""Read from measurements how a cost grows with size."""

import numpy as np
from numpy.typing import ArrayLike

FEWEST_SIZES = 2  # a line through one point has any slope


def scaling_exponent(sizes: ArrayLike, costs: ArrayLike) -> float:
    """Fit cost = factor · size^exponent and return the exponent: the slope of log cost over log size.

    slope = Σ (x − mean x) (y − mean y) / Σ (x − mean x)², with x = log size and y = log cost; the base of the
    logarithm cancels.

    Raises:
        ValueError: the two differ in length, hold fewer than two different sizes, or something is not positive.
    """
    x, y = (_logarithms(name, values) for name, values in (("sizes", sizes), ("costs", costs)))
    if x.shape != y.shape:
        raise ValueError(f"`sizes` has {len(x)} entries and `costs` has {len(y)}; each size needs one cost.")
    if len(np.unique(x)) < FEWEST_SIZES:
        raise ValueError("`sizes` must hold at least two different sizes: a line through one point has any slope.")
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / (x @ x))


def local_exponents(sizes: ArrayLike, costs: ArrayLike) -> list[float]:
    """Return the exponent between each size and the next: where they differ, no single power describes the costs.

    Raises:
        ValueError: as for `scaling_exponent`.
    """
    x, y = np.asarray(sizes), np.asarray(costs)
    return [scaling_exponent(x[place : place + 2], y[place : place + 2]) for place in range(len(x) - 1)]


def _logarithms(name: str, values: ArrayLike) -> np.ndarray:
    numbers = np.asarray(values, dtype=float)
    if numbers.ndim != 1 or not (numbers > 0).all():
        raise ValueError(f"`{name}` must be a list of positive numbers, for they are put under a logarithm.")
    return np.log(numbers)
