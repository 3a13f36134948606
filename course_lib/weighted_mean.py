"""The weighted mean: what attention computes for every query, once it has its weights."""

import numpy as np
from jaxtyping import Float


def weighted_mean(values: Float[np.ndarray, "value"], weights: Float[np.ndarray, "weight"]) -> float:
    """Average values, each counting as much as its weight says: Σ w·v / Σ w.

    Raises:
        ValueError: there are not as many weights as values, or the weights sum to 0.
    """
    if values.shape != weights.shape:
        raise ValueError(f"each value needs one weight; got {values.shape[0]} values and {weights.shape[0]} weights.")
    total = weights.sum()
    if total == 0:
        raise ValueError("the weights sum to 0, so no value counts; give at least one a weight.")
    return float((weights * values).sum() / total)
