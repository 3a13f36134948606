"""Scaled dot-product attention on PyTorch tensors: chapter 01's operation, for layers that learn.

Any axes before the last two are independent problems, so heads and batch rows go through in one call.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def tensor_attention(
    query: Float[Tensor, "... query d_k"],
    key: Float[Tensor, "... key d_k"],
    value: Float[Tensor, "... key d_v"],
    mask: Bool[Tensor, "..."] | None = None,
) -> tuple[Float[Tensor, "... query d_v"], Float[Tensor, "... query key"]]:
    """Average the values with weights softmax(query keyᵀ / √d_k); return the output and the weights.

    Where `mask` is True a key is hidden from a query; it broadcasts against `(..., query, key)`. A query from
    which every key is hidden gets weights and output 0, and its gradients are 0 too. Half precision is raised to
    float32 for the scores and the softmax.

    Raises:
        TypeError: `mask` is not a boolean tensor.
        ValueError: widths, numbers of keys or the mask do not fit.

    Source: Vaswani et al. 2017, §3.2.1, eq. 1, arXiv 1706.03762. The paper does not say what a query sees when
    everything is hidden; here it sees nothing.
    """
    _require_equal("query", query, "key", key, axis=-1)
    _require_equal("value", value, "key", key, axis=-2)
    precise = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(precise) @ key.to(precise).mT / math.sqrt(query.shape[-1])
    if mask is None:
        weights = torch.softmax(scores, dim=-1).to(value.dtype)
        return weights @ value, weights
    hidden = require_mask(mask, scores.shape)
    weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
    # A row of -inf alone becomes NaN in the softmax; all its keys are hidden, so this fill reaches every one.
    weights = weights.masked_fill(hidden, 0).to(value.dtype)
    return weights @ value, weights


def require_mask(mask: object, shape: tuple[int, ...]) -> Tensor:
    """Return a boolean mask that broadcasts against scores of `shape`, `(..., query, key)`; True hides.

    Raises:
        TypeError: the mask is not a boolean tensor. In some libraries 1 hides and in others it shows, and an
            additive mask holds 0 and -inf, so numbers are not guessed at.
        ValueError: the mask does not broadcast, or would add axes, queries or keys.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = f"dtype {mask.dtype}" if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"`mask` must be a boolean tensor (True hides), got {kind}; compare first, as in `mask == 1`.")
    try:
        fits = torch.broadcast_shapes(mask.shape, shape) == torch.Size(shape)
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"`mask` has shape {tuple(mask.shape)}, which does not broadcast against the scores' "
            f"(..., query, key) shape {tuple(shape)}."
        )
    return mask


def _require_equal(first: str, first_tensor: Tensor, second: str, second_tensor: Tensor, axis: int) -> None:
    if first_tensor.shape[axis] != second_tensor.shape[axis]:
        raise ValueError(
            f"`{first}` {tuple(first_tensor.shape)} and `{second}` {tuple(second_tensor.shape)} must have the "
            f"same size along axis {axis}."
        )
