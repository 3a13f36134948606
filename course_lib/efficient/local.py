"""Attention through a window that never fills the table: each block of queries meets only the keys it can see."""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def local_attention(
    query: Float[Tensor, "... token d_k"],
    key: Float[Tensor, "... token d_k"],
    value: Float[Tensor, "... token d_v"],
    window: int,
) -> Float[Tensor, "... token d_v"]:
    """Attend to the token itself and the `window` - 1 before it: j ≤ i and i - j < window.

    Queries go in blocks as long as the window. A block of b queries can see at most b + window - 1 keys, so the
    scores alive at one time are b · (b + window - 1) per head, and about 2 · n · window are computed in all, instead
    of n². Nothing is approximated: the result is that of plain attention under the mask.

    Raises:
        ValueError: `window` is below 1, or the three tensors count different tokens or features.

    Source: Beltagy et al. 2020, §3.1 and §3.2, arXiv 2004.05150. The paper's window looks to both sides and is
    split in two; here it is causal and counts the token itself.
    """
    _require_fit(query, key, value, window)
    length = query.shape[-2]
    scale = 1 / math.sqrt(query.shape[-1])
    outputs = []
    for start in range(0, length, window):
        stop = min(start + window, length)
        first = max(0, start - window + 1)
        places, seen = torch.arange(start, stop), torch.arange(first, stop)
        distance = (places[:, None] - seen).to(query.device)
        scores = query[..., start:stop, :] @ key[..., first:stop, :].mT * scale
        scores = scores.masked_fill((distance < 0) | (distance >= window), -math.inf)
        outputs.append(torch.softmax(scores, dim=-1) @ value[..., first:stop, :])
    return torch.cat(outputs, dim=-2) if outputs else value.clone()


def window_pairs(length: int, window: int) -> int:
    """Count the pairs of tokens that a causal window lets meet: Σ over i of min(i + 1, window)."""
    full = min(window, length)
    return full * (full + 1) // 2 + (length - full) * full


def _require_fit(query: Tensor, key: Tensor, value: Tensor, window: int) -> None:
    if window < 1:
        raise ValueError(f"`window` must be at least 1, so that a token sees itself; got {window}.")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"`query` has {query.shape[-1]} features and `key` {key.shape[-1]}; they must be equal.")
    counts = [tensor.shape[-2] for tensor in (query, key, value)]
    if len(set(counts)) > 1:
        raise ValueError(f"`query`, `key` and `value` must have the same number of tokens, got {counts}.")
