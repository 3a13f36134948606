"""Routing Transformer: centroids learn where queries and keys gather, and each lets its own members attend.

The pattern is learned, where windows and strides are fixed: which pairs meet depends on the vectors themselves.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from course_lib.efficient.fitting import require_count, require_equal_size


def routing_attention(
    query: Float[Tensor, "*axes token d_k"],
    key: Float[Tensor, "*axes token d_k"],
    value: Float[Tensor, "*axes token d_v"],
    centroids: Float[Tensor, "cluster d_k"],
    members: int,
    causal: bool = False,
) -> Float[Tensor, "*axes token d_v"]:
    """Let each centroid pick the queries and the keys that point to it most, and attend among those alone.

    With c clusters of n / c members the work is n² / c. A query that no centroid picks gets 0, and one that several
    pick gets the mean of their answers.

    Args:
        query: queries.
        key: keys.
        value: values.
        centroids: one direction per cluster.
        members: queries, and keys, of each cluster.
        causal: hide later tokens.

    Raises:
        TypeError: `members` is not an int.
        ValueError: `members` is below 1 or above the number of tokens, or sizes do not fit.

    Source: Roy et al. 2021, *Efficient Content-Based Sparse Attention with Routing Transformers*, §4.1 and
    algorithm 1, arXiv 2003.05997. The paper shares queries and keys in causal models; here both may differ.
    """
    require_count("members", members)
    require_equal_size("query", query, "key", key, axis=-2)
    require_equal_size("value", value, "key", key, axis=-2)
    length = query.shape[-2]
    if members > length:
        raise ValueError(f"`members` is {members}, and there are only {length} tokens to pick from.")
    asking, asked = (_picked(x, centroids, members) for x in (query, key))
    scores = _taken(query, asking) @ _taken(key, asked).mT / math.sqrt(query.shape[-1])
    hidden = asked.unsqueeze(-2) > asking.unsqueeze(-1) if causal else torch.zeros_like(scores, dtype=torch.bool)
    weights = scores.masked_fill(hidden, -math.inf).softmax(-1).masked_fill(hidden, 0)
    answers = (weights @ _taken(value, asked)).flatten(-3, -2)
    places = asking.flatten(-2).unsqueeze(-1)
    total = torch.zeros_like(value).scatter_add(-2, places.expand_as(answers), answers)
    picks = torch.zeros_like(value[..., :1]).scatter_add(-2, places, torch.ones_like(answers[..., :1]))
    return total / picks.clamp(min=1)


def moved_centroids(
    centroids: Float[Tensor, "cluster d"], x: Float[Tensor, "token d"], decay: float
) -> Float[Tensor, "cluster d"]:
    """Move each centroid a little toward the mean of the vectors nearest to it; one without any stays.

    Args:
        centroids: directions of length 1.
        x: queries and keys of a batch.
        decay: share of the old centroid that is kept.

    Raises:
        ValueError: `decay` lies outside 0 … 1.

    Source: Roy et al. 2021, §4.1, the moving average of online k-means, arXiv 2003.05997.
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"`decay` must lie between 0 and 1, got {decay}.")
    directions = F.normalize(x, dim=-1)
    nearest = F.one_hot((directions @ centroids.mT).argmax(-1), len(centroids)).to(x.dtype)
    counts = nearest.sum(0).unsqueeze(-1)
    means = torch.where(counts > 0, nearest.mT @ directions / counts.clamp(min=1), centroids)
    return F.normalize(decay * centroids + (1 - decay) * means, dim=-1)


def _picked(x: Tensor, centroids: Tensor, members: int) -> Tensor:
    """Give the places, in order, of the tokens that each centroid picks; shape (..., cluster, member)."""
    nearness = centroids @ F.normalize(x, dim=-1).mT
    return nearness.topk(members, dim=-1).indices.sort(dim=-1).values


def _taken(x: Tensor, places: Tensor) -> Tensor:
    """Take the tokens at some places; shape (..., cluster, member, feature)."""
    flat = places.flatten(-2).unsqueeze(-1)
    return x.gather(-2, flat.expand(*flat.shape[:-1], x.shape[-1])).unflatten(-2, places.shape[-2:])
