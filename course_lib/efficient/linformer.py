"""Linformer: mix the n keys into k before anyone looks at them, and the table has n × k entries."""

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.tensor_attention import tensor_attention


def linformer_attention(
    query: Float[Tensor, "*axes query d_k"],
    key: Float[Tensor, "*axes key d_k"],
    value: Float[Tensor, "*axes key d_v"],
    e: Float[Tensor, "rank key"],
    f: Float[Tensor, "rank key"],
) -> Float[Tensor, "*axes query d_v"]:
    """Attend to mixtures of the keys: softmax(query (e key)ᵀ / √d_k) (f value).

    The matrices are learned together with the model. They fix the sequence's length, and they mix late tokens into
    every key, so that no mask can make the result causal.

    Args:
        query: queries.
        key: keys.
        value: values.
        e: makes `rank` keys out of all of them.
        f: makes as many values.

    Raises:
        ValueError: the matrices were made for another number of keys, differ in rank, or widths do not fit.

    Source: Wang et al. 2020, §4, eq. 7, arXiv 2006.04768.
    """
    for name, matrix in (("e", e), ("f", f)):
        if matrix.shape[-1] != key.shape[-2]:
            raise ValueError(
                f"`{name}` {tuple(matrix.shape)} mixes {matrix.shape[-1]} tokens, and there are {key.shape[-2]} keys; "
                "a Linformer serves one length alone."
            )
    if e.shape[-2] != f.shape[-2]:
        raise ValueError(f"`e` makes {e.shape[-2]} keys and `f` makes {f.shape[-2]} values; the numbers must be equal.")
    return tensor_attention(query, e @ key, f @ value)[0]


def mean_pooling(rank: int, length: int, dtype: torch.dtype | None = None) -> Float[Tensor, "rank length"]:
    """Make the matrix that averages neighboring tokens in `rank` groups, as equal in size as can be.

    Raises:
        ValueError: there are fewer tokens than groups.
    """
    if not 1 <= rank <= length:
        raise ValueError(f"`rank` must be from 1 to the length {length}, got {rank}.")
    group = torch.arange(length) * rank // length
    member = (group == torch.arange(rank).unsqueeze(-1)).to(dtype or torch.get_default_dtype())
    return member / member.sum(-1, keepdim=True)
