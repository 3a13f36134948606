"""Sequences of different lengths in one batch: pad them, remember where, and leave the padding out of a mean."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def pad_batch(
    sequences: Sequence[Sequence[int] | Tensor], pad_id: int
) -> tuple[Int[Tensor, "batch token"], Bool[Tensor, "batch token"]]:
    """Lay sequences of token ids side by side, filled up at the right; return tokens and mask, True at padding.

    The mask comes from the lengths: a real token may have the id `pad_id`.

    Raises:
        ValueError: there is no sequence.
    """
    if not len(sequences):
        raise ValueError("`sequences` is empty; pass at least one sequence of token ids.")
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    longest = int(lengths.max())
    tokens = torch.full((len(sequences), longest), pad_id)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[: len(sequence)] = torch.as_tensor(sequence, dtype=torch.int64)
    return tokens, torch.arange(longest) >= lengths[:, None]


def masked_mean(
    x: Float[Tensor, "batch token d_model"], mask: Bool[Tensor, "batch token"]
) -> Float[Tensor, "batch d_model"]:
    """Average the tokens that `mask` does not hide; a row in which everything is hidden gives 0.

    mean[b] = Σ_j x[b, j] / (number of visible j), over the visible j

    Raises:
        TypeError: `mask` is not a boolean tensor.
        ValueError: `mask` has no entry for every token.
    """
    if mask.dtype != torch.bool:
        raise TypeError(f"`mask` must be boolean (True hides), got {mask.dtype}; compare first, as in `mask == 1`.")
    if mask.shape != x.shape[:2]:
        raise ValueError(f"`mask` {tuple(mask.shape)} must have one entry for every token of `x` {tuple(x.shape)}.")
    visible = x.masked_fill(mask[..., None], 0)
    count = (~mask).sum(dim=1, keepdim=True)
    return visible.sum(dim=1) / count.clamp(min=1).to(x.dtype)
