"""Cut a gradient that is too long, without turning it."""

import math
from collections.abc import Iterable

import torch
from torch import nn


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Scale all gradients by one factor, so that together they are at most `max_norm` long.

    total = √(Σ of all squared entries of all gradients), factor = min(1, max_norm / total)

    Parameters without a gradient are passed over. The gradients are changed in place.

    Args:
        parameters: may be a generator such as `model.parameters()`.
        max_norm: length that is allowed.

    Returns:
        The length before, 0 if there is no gradient.

    Raises:
        ValueError: `max_norm` is not above 0.

    Source: Pascanu, Mikolov, Bengio 2013, §3.2, algorithm 1, arXiv 1211.5063.
    """
    if not max_norm > 0:
        raise ValueError(f"`max_norm` must be above 0, got {max_norm}.")
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    total = math.sqrt(sum(torch.linalg.vector_norm(gradient).item() ** 2 for gradient in gradients))
    if total > max_norm:
        for gradient in gradients:
            gradient.mul_(max_norm / total)
    return total
