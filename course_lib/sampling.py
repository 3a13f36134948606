"""Choose the next token from a model's logits: temperature, then the k likeliest, then the nucleus."""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def token_shares(
    logits: Float[Tensor, " vocab"], temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Float[Tensor, " vocab"]:
    """Give the chance of every token, in float64: softmax(logits / temperature), cut by top-k and then by top-p.

    Top-k keeps the k likeliest tokens. Top-p then keeps the likeliest of those, in order, until their shares reach
    p; the token that crosses p is kept. What is kept is scaled to sum to 1. Of equal logits the first is likelier.
    The temperature 0 gives the likeliest token everything.

    Raises:
        ValueError: `temperature` is negative or not finite, `top_k` is below 1, or `top_p` lies outside (0, 1].

    Source: Fan et al. 2018, §5.4, arXiv 1805.04833 (top-k); Holtzman et al. 2020, §3.1, arXiv 1904.09751 (top-p).
    """
    if not (temperature >= 0 and math.isfinite(temperature)):
        raise ValueError(f"`temperature` must be a finite number of at least 0, got {temperature}.")
    if top_k is not None and top_k < 1:
        raise ValueError(f"`top_k` must be at least 1, got {top_k}.")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"`top_p` must lie in (0, 1], got {top_p}.")
    order = logits.sort(descending=True, stable=True).indices
    sorted_logits = logits.double()[order]
    if temperature == 0:
        shares = torch.zeros_like(sorted_logits)
        shares[0] = 1
    else:
        shares = ((sorted_logits - sorted_logits[0]) / temperature).softmax(dim=-1)
    if top_k is not None:
        shares[top_k:] = 0
        shares = shares / shares.sum()
    if top_p is not None:
        before = shares.cumsum(dim=-1).roll(1)
        before[0] = 0  # the likeliest token is always kept
        shares = shares.masked_fill(before >= top_p, 0)
    return torch.zeros_like(shares).scatter(0, order, shares / shares.sum())


def sample_token(
    logits: Float[Tensor, " vocab"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> int:
    """Draw one token by the chances of `token_shares`.

    Raises:
        ValueError: as `token_shares`.
    """
    return int(torch.multinomial(token_shares(logits, temperature, top_k, top_p), 1, generator=generator))
