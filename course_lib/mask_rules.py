"""One rule, every mask: say for a query's place i and a key's place j whether the key is hidden.

A rule takes two tensors of places that broadcast together and returns a boolean tensor, True where the key is
hidden. Rules combine by `either`; `rule_mask` asks a rule about all pairs of places at once.

Source: the idea is that of FlexAttention's `mask_mod` (Dong et al. 2024, arXiv 2412.05496), where True takes
part; here True hides.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

Rule = Callable[[Tensor, Tensor], Tensor]


def causal(query: Tensor, key: Tensor) -> Tensor:
    """Hide the future: j > i."""
    return key > query


def nothing(query: Tensor, key: Tensor) -> Tensor:
    """Hide nothing, as in an encoder."""
    return torch.zeros(torch.broadcast_shapes(query.shape, key.shape), dtype=torch.bool, device=key.device)


def padding(lengths: Int[Tensor, " batch"]) -> Rule:
    """Hide what lies behind the end of each sequence of a batch: j ≥ lengths[b]."""
    return lambda query, key: (key >= lengths[:, None, None]).expand(-1, len(query), -1)


def too_old(window: int) -> Rule:
    """Hide what lies `window` places or more back: j ≤ i - window.

    Raises:
        ValueError: `window` is below 1, so that nothing could be seen.
    """
    if window < 1:
        raise ValueError(f"`window` must be at least 1, got {window}.")
    return lambda query, key: key <= query - window


def sliding(window: int) -> Rule:
    """Show each query itself and the `window` - 1 places before it."""
    return either(causal, too_old(window))


def prefix(length: int) -> Rule:
    """Show the first `length` places to everyone and hide the future of the rest: j > i and j ≥ length.

    Source: the prefix LM of Raffel et al. 2020, §3.2.1, arXiv 1910.10683.
    """
    return lambda query, key: (key > query) & (key >= length)


def documents(ids: Int[Tensor, " token"]) -> Rule:
    """Hide every other document of a packed sequence: ids[i] ≠ ids[j]."""
    return lambda query, key: ids[query] != ids[key]


def either(*rules: Rule) -> Rule:
    """Hide what at least one of several rules hides."""

    def hidden(query: Tensor, key: Tensor) -> Tensor:
        found = nothing(query, key)
        for rule in rules:
            found = found | rule(query, key)
        return found

    return hidden


def rule_mask(rule: Rule, n_q: int, n_k: int | None = None) -> Bool[Tensor, "*batch query key"]:
    """Ask a rule about every query and key; the queries are the last `n_q` of the `n_k` places.

    So a query that continues a sequence whose keys were kept knows its true place, n_k - n_q + i.

    Raises:
        ValueError: a number is negative.
    """
    n_k = n_q if n_k is None else n_k
    if min(n_q, n_k) < 0:
        raise ValueError(f"`n_q` and `n_k` count tokens and cannot be negative; got {n_q} and {n_k}.")
    query = torch.arange(n_k - n_q, n_k)[:, None]
    return rule(query, torch.arange(n_k)[None, :])
