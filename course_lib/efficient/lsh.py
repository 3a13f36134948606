"""Reformer: hash tokens so that similar ones share a bucket, and let each attend within its buckets alone.

Queries and keys are the same vectors here, so that "similar" has one meaning; keys are brought to length 1.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.efficient.fitting import require_count, require_equal_size
from course_lib.efficient.flash import merge_partial_attention

SELF_PENALTY = 1e5  # Kitaev et al. 2020, §2: a token looks at itself only where it sees nothing else


def lsh_buckets(
    x: Float[Tensor, "*axes token d"], rotations: Float[Tensor, "d half_the_buckets"]
) -> Int[Tensor, "*axes token"]:
    """Hash each vector to the nearest of a set of random directions and their opposites: argmax [x R; −x R].

    Only the direction of a vector counts, and opposite vectors never share a bucket.

    Raises:
        ValueError: the widths do not fit.

    Source: Kitaev et al. 2020, §2, "LSH attention", arXiv 2001.04451, after Andoni et al. 2015.
    """
    if x.shape[-1] != rotations.shape[-2]:
        raise ValueError(
            f"`rotations` {tuple(rotations.shape)} must have as many rows as `x` {tuple(x.shape)} has features."
        )
    rotated = x @ rotations
    return torch.cat([rotated, -rotated], dim=-1).argmax(-1)


def random_rotations(
    rounds: int, d: int, buckets: int, generator: torch.Generator | None = None, dtype: torch.dtype | None = None
) -> Float[Tensor, "rounds d half_the_buckets"]:
    """Draw the directions of several rounds of hashing.

    Raises:
        ValueError: the number of buckets is odd; half of them are the opposites of the other half.
    """
    if buckets % 2 != 0:
        raise ValueError(f"`buckets` must be even, got {buckets}.")
    return torch.randn(rounds, d, buckets // 2, generator=generator, dtype=dtype)


def shared_attention(
    query_key: Float[Tensor, "*axes token d"],
    value: Float[Tensor, "*axes token d_v"],
    hidden: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*axes token d_v"]:
    """Attend with the same vectors as queries and, brought to length 1, as keys: the quadratic form to compare with.

    A token looks at itself only where everything else is hidden. `hidden` is a boolean mask; True hides.

    Source: Kitaev et al. 2020, §2, arXiv 2001.04451.
    """
    vectors = query_key.to(torch.promote_types(query_key.dtype, torch.float32))
    scores = vectors @ _keys_of(vectors).mT / math.sqrt(vectors.shape[-1])
    scores = scores - SELF_PENALTY * torch.eye(scores.shape[-1], dtype=scores.dtype, device=scores.device)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    return scores.softmax(-1).to(value.dtype) @ value


def lsh_attention(
    query_key: Float[Tensor, "*axes token d"],
    value: Float[Tensor, "*axes token d_v"],
    rotations: Float[Tensor, "rounds d half_the_buckets"],
    chunk_size: int,
    causal: bool = False,
) -> Float[Tensor, "*axes token d_v"]:
    """Attend to the tokens that shared a bucket in at least one round, without a table of all pairs.

    In each round the tokens are sorted by bucket and cut into chunks. A token sees those of its bucket that lie in
    its own chunk or in the one before. The rounds are joined by their log-sum-exps; a pair that met in c rounds
    has log c subtracted in each of them, so that it counts once.

    Args:
        query_key: the vectors that are queries and keys.
        value: values.
        rotations: random directions of each round, as `random_rotations` draws them.
        chunk_size: tokens of a chunk; a bucket that fills more than two loses pairs.
        causal: hide later tokens.

    Raises:
        TypeError: `chunk_size` is not an int.
        ValueError: `chunk_size` is below 1, or widths or numbers of tokens do not fit.

    Source: Kitaev et al. 2020, §2 and appendix A, arXiv 2001.04451. The paper cuts the sorted tokens into chunks
    twice as long as the average bucket; here the size is given.
    """
    require_count("chunk_size", chunk_size)
    require_equal_size("value", value, "query_key", query_key, axis=-2)
    precise = torch.promote_types(query_key.dtype, torch.float32)
    vectors, values = query_key.to(precise), value.to(precise)
    sortings = [_Sorting(lsh_buckets(vectors, one.to(precise)), chunk_size) for one in rotations]
    parts = [_one_round(vectors, values, number, sortings, causal) for number in range(len(sortings))]
    out, lse = parts[0]
    for other_out, other_lse in parts[1:]:
        out, lse = merge_partial_attention(out, lse, other_out, other_lse)
    return out.to(value.dtype)


class _Sorting:
    """Know, for one round, each token's bucket and its chunk in the sorted order."""

    def __init__(self, buckets: Tensor, chunk_size: int) -> None:
        length = buckets.shape[-1]
        self.chunk_size = chunk_size
        self.buckets = buckets
        self.order = buckets.argsort(dim=-1, stable=True)
        self.place = self.order.argsort(dim=-1)
        self.chunk = self.place // chunk_size
        self.rest = -length % chunk_size

    def own(self, x: Tensor) -> Tensor:
        """Sort tokens (the last axis but one of x) and cut them into chunks; the last one is filled with 0."""
        taken = x.gather(-2, self.order.unsqueeze(-1).expand(*self.order.shape, x.shape[-1]))
        filled = F.pad(taken, (0, 0, 0, self.rest))
        return filled.unflatten(-2, (filled.shape[-2] // self.chunk_size, self.chunk_size))

    def seen(self, x: Tensor) -> Tensor:
        """Do the same, with the chunk before in front of each; the first one has 0 there."""
        own = self.own(x)
        before = torch.cat([torch.zeros_like(own[..., :1, :, :]), own[..., :-1, :, :]], dim=-3)
        return torch.cat([before, own], dim=-2)

    def back(self, x: Tensor) -> Tensor:
        """Undo `own`."""
        flat = x.flatten(-3, -2)
        return flat.gather(-2, self.place.unsqueeze(-1).expand(*self.place.shape, x.shape[-1]))


def _one_round(
    query_key: Tensor, value: Tensor, number: int, sortings: list[_Sorting], causal: bool
) -> tuple[Tensor, Tensor]:
    """Attend within the chunks of one round; return outputs and log-sum-exps in the tokens' own order."""
    sorting, length = sortings[number], query_key.shape[-2]
    queries, keys, values = sorting.own(query_key), sorting.seen(_keys_of(query_key)), sorting.seen(value)
    scores = queries @ keys.mT / math.sqrt(query_key.shape[-1])
    # Whatever is no token but a fill is told by its place, -1.
    places = torch.arange(1, length + 1, device=value.device).expand(sorting.order.shape).unsqueeze(-1)
    row, column = sorting.own(places) - 1, sorting.seen(places).mT - 1
    meetings = torch.stack([_met(one, sorting) for one in sortings]).sum(0).clamp(min=1)
    hidden = ~_met(sorting, sorting) | (column < 0)
    if causal:
        hidden = hidden | (column > row)
    scores = scores - SELF_PENALTY * (row == column) - meetings.to(scores.dtype).log()
    scores = scores.masked_fill(hidden, -math.inf)
    lse = scores.logsumexp(-1, keepdim=True)
    origin = lse.masked_fill(lse == -math.inf, 0)
    out = (scores - origin).exp() @ values
    return sorting.back(out), sorting.back(lse).squeeze(-1)


def _met(one: _Sorting, arranged: _Sorting) -> Tensor:
    """Tell which pairs of the arrangement's tiles see each other in one round; shape (..., chunk, own, seen)."""
    facts = torch.stack([one.buckets, one.chunk], dim=-1)
    row, column = arranged.own(facts).unsqueeze(-2), arranged.seen(facts).unsqueeze(-3)
    chunks_back = row[..., 1] - column[..., 1]
    return (row[..., 0] == column[..., 0]) & (chunks_back >= 0) & (chunks_back <= 1)


def _keys_of(query_key: Tensor) -> Tensor:
    return F.normalize(query_key, dim=-1)
