"""Does the order of the tokens matter? Shuffle them and see whether the outputs are shuffled, and nothing else."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

Array = np.ndarray
TOLERANCE = 1e-6  # of the largest output: reordered sums differ in their last digits, positions in their first


def is_permutation_equivariant(
    function: Callable[[Float[Array, "sequence d_model"]], Array],
    x: Float[Array, "sequence d_model"],
    permutation: Int[Array, "sequence"],
) -> bool:
    """Tell whether shuffling the tokens shuffles the outputs in the same way: f(x[p]) = f(x)[p].

    Invariance is another thing: f(x[p]) = f(x), as for a mean over all tokens.

    Args:
        function: Maps tokens to one output per token.
        x: The tokens, in rows.
        permutation: Which token comes to which place; one that is its own inverse proves less than others.

    Raises:
        ValueError: `permutation` does not hold every place of `x` once.

    Source: Zaheer et al. 2017, Deep Sets, §2.2 and lemma 3, arXiv 1703.06114.
    """
    if sorted(np.asarray(permutation).tolist()) != list(range(len(x))):
        raise ValueError(f"`permutation` must hold each of the places 0 to {len(x) - 1} once, got {permutation}.")
    shuffled_after, shuffled_before = np.asarray(function(x)), np.asarray(function(x[permutation]))
    if shuffled_before.shape != shuffled_after.shape or len(shuffled_after) != len(x):
        return False
    shuffled_after = shuffled_after[permutation]
    slack = TOLERANCE * float(np.abs(shuffled_after).max(initial=0))
    return bool((np.abs(shuffled_before - shuffled_after) <= slack).all())  # a NaN is within no distance
