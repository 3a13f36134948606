"""One sweep over tiles of keys, with a switch for each thing that a learner may get wrong on the way."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tiling:
    """Attend in tiles of keys; with no switch touched, rightly."""

    inverse: bool = False  # sums grow where they should shrink
    rescale_output: bool = True
    rescale_total: bool = True
    mean: bool = False  # average finished softmaxes
    divide: bool = True
    drop_ragged: bool = False
    zeros: bool = False  # fill the last tile with keys that take part
    local_places: bool = False  # compare places inside the tiles
    whole_diagonal: bool = False  # decide tile by tile
    shift: int = 0  # of the last key that a query sees
    top_left: bool = False
    guard: bool = True  # keep NaN away from queries that see nothing
    maximum: bool = True
    own_tile: bool = False

    def attend(self, query: Tensor, key: Tensor, value: Tensor, block_size: int, causal: bool) -> Tensor:
        """Sweep over the tiles, and finish."""
        n_k = key.shape[-2]
        largest = query.new_full(query.shape[:-1], -math.inf)
        total = torch.zeros_like(largest)
        output = query.new_zeros(*query.shape[:-1], value.shape[-1])
        tiles = range(0, n_k - n_k % block_size if self.drop_ragged else n_k, block_size)
        for start in tiles:
            keys, values = key[..., start : start + block_size, :], value[..., start : start + block_size, :]
            if self.zeros and keys.shape[-2] < block_size:
                missing = (0, 0, 0, block_size - keys.shape[-2])
                keys, values = (torch.nn.functional.pad(one, missing) for one in (keys, values))
            scores = query @ keys.mT / math.sqrt(query.shape[-1])
            scores = scores.masked_fill(self._hidden(query, keys, start, n_k, block_size, causal), -math.inf)
            if self.mean:
                output = output + scores.softmax(-1).nan_to_num(0) @ values / len(tiles)
                continue
            largest, total, output = self._step(scores, values, largest, total, output)
        if self.mean or not self.divide:
            return output
        blind = (total == 0) & self.guard
        return output / total.masked_fill(blind, 1).unsqueeze(-1)

    def _step(
        self, scores: Tensor, values: Tensor, largest: Tensor, total: Tensor, output: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        rising = torch.maximum(largest, scores.amax(-1)) if self.maximum else torch.zeros_like(largest)
        origin = rising.masked_fill(rising == -math.inf, 0) if self.guard else rising
        shrink = (largest - origin).exp() if self.maximum else torch.ones_like(largest)
        if self.inverse:
            shrink = torch.where(largest == -math.inf, 0, (origin - largest).exp())
        weights = (scores - origin.unsqueeze(-1)).exp()
        total = (total * shrink if self.rescale_total else total) + weights.sum(-1)
        output = (output * shrink.unsqueeze(-1) if self.rescale_output else output) + weights @ values
        return rising, total, output

    def _hidden(self, query: Tensor, keys: Tensor, start: int, n_k: int, block_size: int, causal: bool) -> Tensor:
        n_q, width = query.shape[-2], keys.shape[-2]
        row, column = torch.arange(n_q).unsqueeze(-1), torch.arange(start, start + width)
        if self.own_tile:
            hidden = row // block_size != column // block_size
        else:
            hidden = torch.zeros(n_q, width, dtype=torch.bool)
        if not causal:
            return hidden
        place = row + self.shift + (0 if self.top_left else n_k - n_q)
        if self.local_places:
            return hidden | (column % block_size > place % block_size)
        if self.whole_diagonal:
            return hidden | (column // block_size > place // block_size)
        return hidden | (column > place) & (column < n_k)
