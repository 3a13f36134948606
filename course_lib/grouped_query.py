"""Two savings around the projections: one product for queries, keys and values, and fewer key heads."""

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.tensor_attention import tensor_attention


def fused_qkv(
    x: Float[Tensor, "... d_model"],
    w_q: Float[Tensor, "d_model width_q"],
    w_k: Float[Tensor, "d_model width_k"],
    w_v: Float[Tensor, "d_model width_v"],
) -> tuple[Float[Tensor, "... width_q"], Float[Tensor, "... width_k"], Float[Tensor, "... width_v"]]:
    """Project to queries, keys and values in one matrix product: x [w_q | w_k | w_v], cut at the widths.

    Every column of a product depends on its own column of the right matrix alone, so laying the matrices side by
    side changes no number. Keys and values may be narrower than queries. In a layer the wide matrix is stored
    ready; here it is laid out at every call.

    Raises:
        ValueError: a matrix does not take the width of `x`.
    """
    for name, matrix in (("w_q", w_q), ("w_k", w_k), ("w_v", w_v)):
        if matrix.shape[0] != x.shape[-1]:
            raise ValueError(
                f"`{name}` {tuple(matrix.shape)} must have as many rows as `x` {tuple(x.shape)} has features."
            )
    widths = [matrix.shape[-1] for matrix in (w_q, w_k, w_v)]
    query, key, value = (x @ torch.cat([w_q, w_k, w_v], dim=-1)).split(widths, dim=-1)
    return query, key, value


def grouped_query_attention(
    query: Float[Tensor, "batch heads query d_head"],
    key: Float[Tensor, "batch groups key d_head"],
    value: Float[Tensor, "batch groups key d_value"],
) -> Float[Tensor, "batch heads query d_value"]:
    """Attend with many query heads over few key and value heads; consecutive query heads share one.

    Query head i reads key head ⌊i · groups / heads⌋. One group is multi-query attention, as many groups as heads
    is multi-head attention.

    Raises:
        ValueError: `key` and `value` differ in groups, or the groups do not divide the query heads.

    Source: Ainslie et al. 2023, §2.2, arXiv 2305.13245; one group: Shazeer 2019, §3, arXiv 1911.02150.
    """
    heads, groups = query.shape[1], key.shape[1]
    if value.shape[1] != groups:
        raise ValueError(f"`key` has {groups} heads and `value` has {value.shape[1]}; they must be as many.")
    if groups == 0 or heads % groups:
        raise ValueError(
            f"`key` has {groups} heads, which do not share {heads} query heads evenly: heads must be a multiple."
        )
    # The query heads of a group stand one below the other, so keys and values are read in place, never copied.
    stacked = query.unflatten(1, (groups, heads // groups)).flatten(2, 3)
    output, _ = tensor_attention(stacked, key, value)
    return output.unflatten(2, (heads // groups, query.shape[2])).flatten(1, 2)
