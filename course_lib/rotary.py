"""Rotary positions: turn each pair of features of queries and keys by an angle that grows with the position.

The score of two turned vectors depends on the difference of their angles, and so on their distance alone.
"""

import math

import torch
from jaxtyping import Float, Real
from torch import Tensor

from course_lib.positions import BASE, require_pairs


def apply_rotary(
    x: Float[Tensor, "... sequence d_head"], positions: Real[Tensor, "sequence"], base: float = BASE
) -> Float[Tensor, "... sequence d_head"]:
    """Turn the pairs (0, 1), (2, 3), … of every token: pair i by the angle position · base^(-2i / d_head).

    (a, b) → (a cos - b sin, a sin + b cos)

    It acts on queries and keys, inside each head; values stay as they are. Angles are computed in float64, since
    half precision has no room for the angle of a late position.

    Args:
        x: Queries or keys.
        positions: Where each token stands: with gaps, from any start, or fractional.
        base: Sets how slowly the last pairs turn.

    Raises:
        ValueError: the width is odd, or there is not one position per token.

    Source: Su et al. 2021, RoFormer, §3.2.2 and eq. 34, arXiv 2104.09864.
    """
    cos, sin = _cos_and_sin(x, positions, base)
    first, second = x[..., 0::2].to(cos.dtype), x[..., 1::2].to(cos.dtype)
    turned = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1)
    return turned.flatten(-2).to(x.dtype)


def apply_rotary_half_split(
    x: Float[Tensor, "... sequence d_head"], positions: Real[Tensor, "sequence"], base: float = BASE
) -> Float[Tensor, "... sequence d_head"]:
    """Turn the pairs (0, d/2), (1, d/2 + 1), …: the same rotation for another layout of the same features.

    Raises:
        ValueError: the width is odd, or there is not one position per token.

    Source: the layout of GPT-NeoX (Black et al. 2022, arXiv 2204.06745) and of the Llama weights as Hugging Face
    publishes them. Su et al. 2021 pair neighbors.
    """
    cos, sin = _cos_and_sin(x, positions, base)
    first, second = x.to(cos.dtype).chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1).to(x.dtype)


def to_half_split(x: Real[Tensor, "... d_head"]) -> Real[Tensor, "... d_head"]:
    """Lay neighboring pairs out for the half-split pairing: even columns first, then the odd ones.

    Raises:
        ValueError: the width is odd.
    """
    require_pairs("the last axis of x", x.shape[-1])
    return torch.cat([x[..., 0::2], x[..., 1::2]], dim=-1)


def from_half_split(x: Real[Tensor, "... d_head"]) -> Real[Tensor, "... d_head"]:
    """Undo `to_half_split`.

    Raises:
        ValueError: the width is odd.
    """
    require_pairs("the last axis of x", x.shape[-1])
    return torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


def _cos_and_sin(
    x: Float[Tensor, "... sequence d_head"], positions: Real[Tensor, "sequence"], base: float
) -> tuple[Tensor, Tensor]:
    """Compute cosine and sine of every position's angles, at least in float32."""
    require_pairs("the last axis of x", x.shape[-1])
    if positions.shape != x.shape[-2:-1]:
        raise ValueError(
            f"`positions` must hold one position for each of the {x.shape[-2]} tokens, got shape "
            f"{tuple(positions.shape)}."
        )
    exponents = torch.arange(0, x.shape[-1], 2, dtype=torch.float64, device=x.device) / x.shape[-1]
    angles = positions.to(torch.float64)[:, None] * torch.exp(-math.log(base) * exponents)
    precise = torch.promote_types(x.dtype, torch.float32)
    return angles.cos().to(precise), angles.sin().to(precise)
