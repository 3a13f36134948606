"""Vectors that say where a token stands: waves of fixed lengths, or a table that is learned.

Both are added to the tokens before the first layer. Columns 2i and 2i + 1 of the waves are a pair: one clock
hand, seen from the side and from above.
"""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

Array = np.ndarray
BASE = 10_000.0  # Vaswani et al. 2017, §3.5


def require_pairs(name: str, width: int) -> None:
    """Refuse a width whose columns do not come in pairs.

    Raises:
        ValueError: `width` is odd or below 2.
    """
    if width < 2 or width % 2:
        raise ValueError(f"`{name}` must be even and at least 2, as sine and cosine come in pairs; got {width}.")


def frequencies(d_model: int, base: float = BASE) -> Float[Array, "pair"]:
    """Give how far each pair turns from one position to the next, in radians: base^(-2i / d_model) for pair i.

    Raises:
        ValueError: `d_model` is odd or below 2, or `base` is not above 0.

    Source: Vaswani et al. 2017, §3.5, arXiv 1706.03762. In the paper i counts pairs, not columns.
    """
    require_pairs("d_model", d_model)
    if not base > 0:
        raise ValueError(f"`base` must be above 0, got {base}.")
    return base ** (-np.arange(0, d_model, 2) / d_model)


def wavelengths(d_model: int, base: float = BASE) -> Float[Array, "pair"]:
    """Give after how many positions each pair is back where it began: 2π / frequency.

    Source: Vaswani et al. 2017, §3.5, arXiv 1706.03762. The paper gives the ends as 2π and 20,000π; the upper
    one is a limit that no width reaches, since the last pair has 2π · base^((d_model - 2) / d_model).
    """
    return 2 * math.pi / frequencies(d_model, base)


def sinusoidal_encoding(length: int, d_model: int, base: float = BASE) -> Float[Array, "length d_model"]:
    """Encode the positions 0 … length - 1 as waves, the same for every text.

    PE[p, 2i] = sin(p / base^(2i / d_model)),  PE[p, 2i + 1] = cos(p / base^(2i / d_model))

    Raises:
        ValueError: `d_model` is odd or below 2, `length` is negative, or `base` is not above 0.

    Source: Vaswani et al. 2017, §3.5, arXiv 1706.03762.
    """
    if length < 0:
        raise ValueError(f"`length` must not be negative, got {length}.")
    angles = np.arange(length)[:, None] * frequencies(d_model, base)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, d_model)


def shift_matrix(offset: float, d_model: int, base: float = BASE) -> Float[Array, "d_model d_model"]:
    """Give the matrix that moves every encoding by `offset` positions: PE[p + offset] = PE[p] @ M, for all p.

    Each pair turns by its own angle a = offset · frequency, so M has the blocks [[cos a, -sin a], [sin a, cos a]]
    on its diagonal and zeros elsewhere. M is a rotation: its inverse is its transpose, the shift by -offset.

    Raises:
        ValueError: `d_model` is odd or below 2, or `base` is not above 0.

    Source: Vaswani et al. 2017, §3.5, arXiv 1706.03762. The paper says that such a matrix exists; this one
    follows from the addition theorems.
    """
    angles = offset * frequencies(d_model, base)
    matrix = np.zeros((d_model, d_model))
    sine, cosine = np.arange(0, d_model, 2), np.arange(1, d_model, 2)
    matrix[sine, sine] = matrix[cosine, cosine] = np.cos(angles)
    matrix[cosine, sine] = np.sin(angles)
    matrix[sine, cosine] = -np.sin(angles)
    return matrix


class LearnedPositions(nn.Module):
    """Add a learned vector for every position: x[b, p] + table[p].

    Source: Gehring et al. 2017, §3.1, arXiv 1705.03122; used by BERT (Devlin et al. 2018, §3, arXiv 1810.04805)
    and GPT-2.
    """

    def __init__(self, max_length: int, d_model: int) -> None:
        """Create the table, a row for each of the positions 0 … max_length - 1."""
        super().__init__()
        self.table = nn.Embedding(max_length, d_model)

    def forward(self, x: Float[Tensor, "batch sequence d_model"]) -> Float[Tensor, "batch sequence d_model"]:
        """Return the tokens with their positions added.

        Raises:
            ValueError: `x` is longer than the table: a position beyond it has no vector.
        """
        length, longest = x.shape[-2], self.table.num_embeddings
        if length > longest:
            raise ValueError(f"`x` has {length} positions, but the table ends at {longest}; shorten the text.")
        return x + self.table(torch.arange(length, device=x.device))


def interpolate_positions(length: int, trained_length: int) -> Float[Tensor, "length"]:
    """Squeeze the positions of a long text into the range that a model was trained on: p · trained / length.

    A text that fits keeps its positions 0, 1, 2, …

    Raises:
        ValueError: a length is below 1.

    Source: Chen et al. 2023, Position Interpolation, §2.3, eq. 4, arXiv 2306.15595.
    """
    for name, value in (("length", length), ("trained_length", trained_length)):
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value}.")
    return torch.arange(length) * min(1.0, trained_length / length)
