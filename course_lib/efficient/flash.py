"""Exact attention in tiles: the table of all pairs is never written, forward or backward.

A softmax can be taken piece by piece when each piece remembers its log-sum-exp, the logarithm of the sum by which
its weights were divided: that number tells how much each piece weighs when two are joined.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from course_lib.efficient.fitting import require_count, require_equal_size


def merge_partial_attention(
    out_a: Float[Tensor, "*axes query d_v"],
    lse_a: Float[Tensor, "*axes query"],
    out_b: Float[Tensor, "*axes query d_v"],
    lse_b: Float[Tensor, "*axes query"],
) -> tuple[Float[Tensor, "*axes query d_v"], Float[Tensor, "*axes query"]]:
    """Join attention over two sets of keys into attention over both: outputs weighted by exp(lse).

    lse = log(exp(lse_a) + exp(lse_b)) and out = exp(lse_a − lse) out_a + exp(lse_b − lse) out_b, with the larger
    of the two taken out first, so that nothing overflows. A query that saw nothing in one set has lse = −∞ there,
    and the other set alone counts; one that saw nothing in both keeps −∞, output 0 and zero gradients.

    Raises:
        ValueError: the shapes of outputs and log-sum-exps do not belong together.

    Source: Milakov & Gimelshein 2018, "Online normalizer calculation for softmax", §3.1, arXiv 1805.02867; used on
    outputs in Dao et al. 2022, §3.1, arXiv 2205.14135.
    """
    shapes = [tuple(tensor.shape) for tensor in (out_a, lse_a, out_b, lse_b)]
    if shapes[0] != shapes[2] or shapes[1] != shapes[3] or shapes[0][:-1] != shapes[1]:
        raise ValueError(
            "`out_a` and `out_b` must have one shape (..., query, d_v) and `lse_a` and `lse_b` its (..., query); "
            f"got {shapes[0]}, {shapes[2]} and {shapes[1]}, {shapes[3]}."
        )
    larger = torch.maximum(lse_a, lse_b).detach()
    blind = larger == -math.inf
    origin = larger.masked_fill(blind, 0)
    share_a, share_b = (lse_a - origin).exp(), (lse_b - origin).exp()
    total = (share_a + share_b).masked_fill(blind, 1)
    out = (share_a / total).unsqueeze(-1) * out_a + (share_b / total).unsqueeze(-1) * out_b
    return out.to(out_a.dtype), (origin + total.log()).masked_fill(blind, -math.inf)


def flash_attention(
    query: Float[Tensor, "*axes query d_k"],
    key: Float[Tensor, "*axes key d_k"],
    value: Float[Tensor, "*axes key d_v"],
    block_size: int,
    causal: bool = False,
) -> Float[Tensor, "*axes query d_v"]:
    """Compute softmax(query keyᵀ / √d_k) value in tiles of `block_size` queries by `block_size` keys.

    While the tiles of a row of queries pass by, each query keeps three things: the largest score so far, the sum
    of exp(score − largest) and the same sum weighted by the values. When the largest score rises, both sums shrink
    by exp(old − new). The backward pass calculates each tile's scores again instead of having kept them.

    Args:
        query: queries.
        key: keys.
        value: values.
        block_size: queries, and keys, of one tile; the last tiles may be smaller.
        causal: hide later keys; with fewer or more queries than keys the last query still sees every key. Tiles
            that lie wholly in the future are skipped.

    Raises:
        TypeError: `block_size` is not an int.
        ValueError: `block_size` is below 1, or widths or numbers of keys do not fit.

    Source: Dao et al. 2022, Algorithms 1 and 4, arXiv 2205.14135; Dao 2023, Algorithms 1 and 2, arXiv 2307.08691,
    whose order of loops and single division at the end are used. The paper chooses tiles that fit a GPU's on-chip
    memory; here the size is given, and PyTorch's operations calculate each tile.
    """
    return flash_attention_with_lse(query, key, value, block_size, causal)[0]


def flash_attention_with_lse(
    query: Float[Tensor, "*axes query d_k"],
    key: Float[Tensor, "*axes key d_k"],
    value: Float[Tensor, "*axes key d_v"],
    block_size: int,
    causal: bool = False,
) -> tuple[Float[Tensor, "*axes query d_v"], Float[Tensor, "*axes query"]]:
    """Return what `flash_attention` does, and each query's log-sum-exp of the scores it saw.

    The log-sum-exp is what `merge_partial_attention` needs to join the result with that over other keys. It is in
    at least float32, and gradients flow through it too.

    Raises:
        TypeError: as in `flash_attention`.
        ValueError: as in `flash_attention`.
    """
    require_count("block_size", block_size)
    require_equal_size("query", query, "key", key, axis=-1)
    require_equal_size("value", value, "key", key, axis=-2)
    return _Tiled.apply(query, key, value, block_size, causal)  # pyright: ignore[reportReturnType]


class _Tiled(torch.autograd.Function):
    """Keep inputs, output and log-sum-exp for the backward pass, all of them linear in the sequence."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, block_size: int, causal: bool) -> Any:
        output, lse = _forward(query, key, value, block_size, causal)
        ctx.save_for_backward(query, key, value, output, lse)
        ctx.block_size, ctx.causal = block_size, causal
        return output, lse

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor, grad_lse: Tensor) -> Any:
        query, key, value, output, lse = ctx.saved_tensors
        given = (query, key, value, output, lse, grad_output, grad_lse)
        return *_backward(*given, ctx.block_size, ctx.causal), None, None


def _forward(query: Tensor, key: Tensor, value: Tensor, block_size: int, causal: bool) -> tuple[Tensor, Tensor]:
    precise = torch.promote_types(query.dtype, torch.float32)
    output = value.new_empty(*query.shape[:-1], value.shape[-1])
    lse = query.new_empty(query.shape[:-1], dtype=precise)
    for rows in _tiles(query.shape[-2], block_size):
        largest = torch.full_like(lse[..., rows], -math.inf)
        total = torch.zeros_like(largest)
        weighted = total.new_zeros(*total.shape, value.shape[-1])
        for columns in _tiles(_end_of_sight(rows, query, key, causal), block_size):
            scores = _scores(query, key, rows, columns, causal)
            rising = torch.maximum(largest, scores.amax(-1))
            # A query that has seen nothing yet has −∞ as its largest score; −∞ − (−∞) would be NaN.
            origin = rising.masked_fill(rising == -math.inf, 0)
            shrink, weights = (largest - origin).exp(), (scores - origin.unsqueeze(-1)).exp()
            total = total * shrink + weights.sum(-1)
            weighted = weighted * shrink.unsqueeze(-1) + weights @ value[..., columns, :].to(precise)
            largest = rising
        output[..., rows, :] = weighted / total.masked_fill(total == 0, 1).unsqueeze(-1)
        lse[..., rows] = largest + total.log()
    return output, lse


def _backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    lse: Tensor,
    grad_output: Tensor,
    grad_lse: Tensor,
    block_size: int,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Calculate the gradients tile by tile: dS = P ∘ (dO Vᵀ − rowsum(dO ∘ O) + dlse)."""
    precise, scale = lse.dtype, 1 / math.sqrt(query.shape[-1])
    grad_query, grad_key, grad_value = (torch.zeros_like(one, dtype=precise) for one in (query, key, value))
    correction = (grad_output.to(precise) * output.to(precise)).sum(-1) - grad_lse
    origin = lse.masked_fill(lse == -math.inf, 0)
    for rows in _tiles(query.shape[-2], block_size):
        incoming = grad_output[..., rows, :].to(precise)
        for columns in _tiles(_end_of_sight(rows, query, key, causal), block_size):
            scores = _scores(query, key, rows, columns, causal)
            weights = (scores - origin[..., rows].unsqueeze(-1)).exp()
            grad_value[..., columns, :] += weights.mT @ incoming
            grad_weights = incoming @ value[..., columns, :].to(precise).mT
            grad_scores = weights * (grad_weights - correction[..., rows].unsqueeze(-1)) * scale
            grad_query[..., rows, :] += grad_scores @ key[..., columns, :].to(precise)
            grad_key[..., columns, :] += grad_scores.mT @ query[..., rows, :].to(precise)
    return grad_query.to(query.dtype), grad_key.to(key.dtype), grad_value.to(value.dtype)


def _tiles(length: int, block_size: int) -> list[slice]:
    return [slice(start, min(start + block_size, length)) for start in range(0, length, block_size)]


def _end_of_sight(rows: slice, query: Tensor, key: Tensor, causal: bool) -> int:
    """Return how many keys, from the first on, at least one query of these rows sees."""
    n_q, n_k = query.shape[-2], key.shape[-2]
    return max(0, min(n_k, rows.stop + n_k - n_q)) if causal else n_k


def _scores(query: Tensor, key: Tensor, rows: slice, columns: slice, causal: bool) -> Tensor:
    """Calculate the scores of one tile, −∞ where a key lies in the future of a query."""
    precise = torch.promote_types(query.dtype, torch.float32)
    scores = query[..., rows, :].to(precise) @ key[..., columns, :].to(precise).mT / math.sqrt(query.shape[-1])
    last_seen = rows.start + key.shape[-2] - query.shape[-2]
    if causal and columns.stop - 1 > last_seen:
        row = torch.arange(rows.start, rows.stop, device=query.device).unsqueeze(-1)
        column = torch.arange(columns.start, columns.stop, device=query.device)
        scores = scores.masked_fill(column > row + key.shape[-2] - query.shape[-2], -math.inf)
    return scores
