"""T5's buckets: near distances each have a number of their own, far ones share numbers, in growing groups."""

import math

import torch
from jaxtyping import Int
from torch import Tensor

NUM_BUCKETS, MAX_DISTANCE = 32, 128  # Raffel et al. 2020, §2.1


def relative_position_bucket(
    relative_position: Int[Tensor, "..."],
    bidirectional: bool,
    num_buckets: int = NUM_BUCKETS,
    max_distance: int = MAX_DISTANCE,
) -> Int[Tensor, "..."]:
    """Sort distances into buckets, for each of which a model learns one number per head to add to the score.

    Bidirectional: half of the buckets are for keys at or before the query, the other half for keys after it.
    Otherwise all are for keys at or before it, and every later key falls into bucket 0. Of the buckets for one
    direction the first half hold one distance each. The others hold ranges that grow geometrically up to
    `max_distance`; whatever is farther falls into the last one.

    Args:
        relative_position: The key's position minus the query's.
        bidirectional: Whether keys after the query count.
        num_buckets: How many buckets there are in all.
        max_distance: The distance from which on all is one bucket.

    Raises:
        TypeError: positions are not whole numbers.
        ValueError: there are too few buckets to halve, or `max_distance` lies within the exact ones.

    Source: Raffel et al. 2020, §2.1, arXiv 1910.10683; the formula is that of the code published with it.
    """
    if relative_position.is_floating_point():
        raise TypeError(f"`relative_position` must hold whole numbers, got {relative_position.dtype}.")
    directions = 2 if bidirectional else 1
    per_direction = num_buckets // directions
    exact = per_direction // 2
    if exact < 1:
        raise ValueError(f"`num_buckets` must be at least {2 * directions} here, got {num_buckets}.")
    if max_distance <= exact:
        raise ValueError(f"`max_distance` must exceed the {exact} exact distances, got {max_distance}.")
    if bidirectional:
        offset, distance = per_direction * (relative_position > 0), relative_position.abs()
    else:
        offset, distance = 0, (-relative_position).clamp(min=0)
    growth = torch.log(distance.clamp(min=exact).double() / exact) / math.log(max_distance / exact)
    shared = (exact + (growth * (per_direction - exact)).long()).clamp(max=per_direction - 1)
    return offset + torch.where(distance < exact, distance, shared)
