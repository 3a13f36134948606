"""Compressive Transformer: the recent past token by token, the older past as means of neighbors.

The pattern is hierarchical: what is far away is seen from farther away.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from course_lib.efficient.fitting import require_count
from course_lib.tensor_attention import tensor_attention


def compressive_attention(
    query: Float[Tensor, "*axes token d_k"],
    key: Float[Tensor, "*axes token d_k"],
    value: Float[Tensor, "*axes token d_v"],
    recent: int,
    rate: int,
) -> Float[Tensor, "*axes token d_v"]:
    """Attend causally to recent tokens and to means of older ones: one key and one value for each `rate` tokens.

    A group is summarized for a query when all its tokens are `recent` or more places away; until then each stands
    for itself. So every earlier token is seen exactly once, alone or in a mean.

    Args:
        query: queries.
        key: keys.
        value: values.
        recent: tokens that are never summarized, the query's own included.
        rate: tokens of a group.

    Raises:
        TypeError: `recent` or `rate` is not an int.
        ValueError: one of them is below 1, or sizes do not fit.

    Source: Rae et al. 2020, *Compressive Transformers for Long-Range Sequence Modelling*, §3, arXiv 1911.05507. The
    paper compresses the states of earlier segments, by means among other ways; here the means are of keys and
    values, and a mask stands for the two memories.
    """
    hidden = compressive_mask(key.shape[-2], recent, rate)
    keys, values = (torch.cat([x, _means(x, rate)], dim=-2) for x in (key, value))
    return tensor_attention(query, keys, values, hidden.to(query.device))[0]


def compressive_mask(length: int, recent: int, rate: int) -> Bool[Tensor, "token token_or_group"]:
    """Tell which tokens, and after them which groups, are hidden from each query; True hides.

    Raises:
        TypeError: a number is not an int.
        ValueError: a number is below 1.
    """
    for name, number in (("length", length), ("recent", recent), ("rate", rate)):
        require_count(name, number)
    places = torch.arange(length)
    groups = torch.arange(length // rate)
    last_of_group = (groups + 1) * rate - 1
    summarized = places[:, None] - last_of_group >= recent
    inside = summarized.repeat_interleave(rate, dim=1)
    ungrouped = torch.zeros(length, length - inside.shape[1], dtype=torch.bool)
    future = places > places[:, None]
    return torch.cat([future | torch.cat([inside, ungrouped], dim=1), ~summarized], dim=1)


def _means(x: Tensor, rate: int) -> Tensor:
    """Average the tokens of each complete group."""
    complete = x.shape[-2] // rate * rate
    return x[..., :complete, :].unflatten(-2, (complete // rate, rate)).mean(-2)
