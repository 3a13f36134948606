"""Read attention maps as numbers: how widely each query looks, where most, and which way that moves."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def attention_entropy(weights: Float[Tensor, "*queries key"]) -> Float[Tensor, "*queries"]:
    """Measure how widely each query spreads its attention, in nats: -Σ_j w_j ln w_j, with 0 ln 0 = 0.

    It is 0 when one key has everything, and ln n when n keys share evenly.

    Source: Shannon 1948, "A Mathematical Theory of Communication", §6.
    """
    return -torch.xlogy(weights, weights).sum(dim=-1)


def alignment(weights: Float[Tensor, "query key"]) -> tuple[Int[Tensor, " query"], float]:
    """Return the key that each query looks at most, and the fraction of steps that do not go back.

    fraction = (number of i with best_{i+1} ≥ best_i) / (queries - 1); 1 for a single query, which takes no step.

    Source: the monotonic alignments that Raffel et al. 2017, §2, arXiv 1704.00784, build a model on; here they are
    only counted.
    """
    best = weights.argmax(dim=-1)
    steps = best[1:] >= best[:-1]
    return best, float(steps.double().mean()) if len(steps) else 1.0
