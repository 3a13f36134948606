"""Who may look at whom: boolean masks in which True hides, their other forms, and a softmax that obeys them."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.mask_rules import causal, documents, either, rule_mask
from course_lib.tensor_attention import require_mask


def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    """Hide the future: hidden[i, j] = j > i + n_k - n_q, so that the last query sees every key.

    With more queries than keys, the first ones stand before every key and see nothing.

    Args:
        n_q: number of queries.
        n_k: number of keys, those kept from earlier steps included; as many as queries if not given.

    Raises:
        ValueError: a number is negative.

    Source: Vaswani et al. 2017, §3.2.3, arXiv 1706.03762, for n_q = n_k.
    """
    return rule_mask(causal, n_q, n_k)


def combine_masks(
    causal: Bool[Tensor, "token token"], padding: Bool[Tensor, "batch token"]
) -> Bool[Tensor, "batch 1 token token"]:
    """Hide a key that lies in the future or is padding: causal[i, j] or padding[b, j].

    The axis of size 1 is for the heads, which all obey the same mask.

    Raises:
        TypeError: a mask is not a boolean tensor.
        ValueError: the two masks count different numbers of tokens.
    """
    require_mask(causal, causal.shape)
    require_mask(padding, padding.shape)
    if causal.shape[-1] != padding.shape[-1]:
        raise ValueError(
            f"`causal` {tuple(causal.shape)} and `padding` {tuple(padding.shape)} must have the same number of tokens "
            "along their last axis."
        )
    return causal | padding[:, None, None, :]


def document_mask(document_ids: Int[Tensor, " token"]) -> Bool[Tensor, "token token"]:
    """Hide the future and every other document: j > i or document_ids[i] ≠ document_ids[j].

    Several short documents share one sequence this way and never meet.

    Source: Krell et al. 2021, "Efficient Sequence Packing without Cross-contamination", §3.2, arXiv 2107.02027.
    The paper packs for BERT and is not causal; here each document is.
    """
    return rule_mask(either(causal, documents(document_ids)), len(document_ids))


def additive_mask(mask: Bool[Tensor, "*axes"], dtype: torch.dtype) -> Float[Tensor, "*axes"]:
    """Write a boolean mask as numbers to be added to scores: -inf where it hides, 0 elsewhere.

    Raises:
        TypeError: `mask` is not a boolean tensor, or `dtype` cannot hold -inf.
    """
    require_mask(mask, mask.shape)
    if not dtype.is_floating_point:
        raise TypeError(f"`dtype` must be a floating dtype, which can hold -inf; got {dtype}.")
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -math.inf)


def masked_softmax(scores: Float[Tensor, "*axes key"], mask: Bool[Tensor, "..."]) -> Float[Tensor, "*axes key"]:
    """Share 1 out among the visible keys of every row: softmax over the keys that `mask` does not hide.

    A hidden key has the weight 0, and a row that sees nothing has only zeros, in value and in gradient. Half
    precision is raised to float32 for the softmax and cast back.

    Raises:
        TypeError: `mask` is not a boolean tensor.
        ValueError: `mask` does not broadcast against `scores`.
    """
    hidden = require_mask(mask, scores.shape)
    precise = scores.to(torch.promote_types(scores.dtype, torch.float32))
    weights = torch.softmax(precise.masked_fill(hidden, -math.inf), dim=-1)
    # A row of -inf alone becomes NaN in the softmax; all of it is hidden, so this fill reaches every NaN.
    return weights.masked_fill(hidden, 0).to(scores.dtype)


def to_sdpa_mask(mask: Bool[Tensor, "*axes"]) -> Bool[Tensor, "*axes"]:
    """Turn a mask in which True hides into one for `F.scaled_dot_product_attention`, where True takes part.

    Raises:
        TypeError: `mask` is not a boolean tensor.
    """
    return ~require_mask(mask, mask.shape)
