"""Pieces that wrong rotations are put together from, and the right forms that every check must accept."""

from __future__ import annotations

import math

import torch

from course_lib import rotary

BASE = 10_000.0


def refuse_odd(x):
    """Raise what the contract asks for."""
    if x.shape[-1] % 2:
        raise ValueError(f"the width must be even, got {x.shape[-1]}")


def angles_of(x, positions, base, exponent=2.0):
    """Multiply positions by base^(-exponent · i / d)."""
    refuse_odd(x)
    pairs = torch.arange(x.shape[-1] // 2, dtype=torch.float64)
    return positions.double()[:, None] * base ** (-exponent * pairs / x.shape[-1])


def turn(x, angles, signs=(-1, 1)):
    """Turn neighboring pairs, with signs for the two sines."""
    cos, sin, first, second = angles.cos(), angles.sin(), x.double()[..., 0::2], x.double()[..., 1::2]
    left, right = first * cos + signs[0] * second * sin, signs[1] * first * sin + second * cos
    return torch.stack([left, right], dim=-1).flatten(-2).to(x.dtype)


def by_complex_numbers(x, positions, base=BASE):
    """Multiply complex numbers of length one."""
    refuse_odd(x)
    angles = positions.float()[:, None] / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2).to(x.dtype)


def with_neighbors_swapped(x, positions, base=BASE):
    """Rotate by the neighbors' negatives, and cast the cosines."""
    if x.size(-1) % 2:
        raise ValueError("odd width")
    rates = torch.exp(torch.arange(0, x.size(-1), 2).float() * (-math.log(base) / x.size(-1)))
    angles = torch.outer(positions.float(), rates).repeat_interleave(2, dim=-1)
    swapped = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).reshape(x.shape)
    return x * angles.cos().to(x.dtype) + swapped * angles.sin().to(x.dtype)


def writing_into_an_empty_tensor(x, positions, base=BASE):
    """Go pair by pair."""
    refuse_odd(x)
    out = torch.empty_like(x)
    for pair in range(x.shape[-1] // 2):
        angle = positions.to(torch.float32) * base ** (-2 * pair / x.shape[-1])
        cos, sin = torch.cos(angle), torch.sin(angle)
        a, b = x[..., 2 * pair].float(), x[..., 2 * pair + 1].float()
        out[..., 2 * pair], out[..., 2 * pair + 1] = a * cos - b * sin, a * sin + b * cos
    return out


def by_matrices(x, positions, base=BASE):
    """Multiply each pair by its 2 x 2 matrix."""
    refuse_odd(x)
    angles = angles_of(x, positions, base)
    cos, sin = angles.cos(), angles.sin()
    blocks = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    pairs = x.double().unflatten(-1, (-1, 2, 1))
    return (blocks @ pairs).flatten(-3).to(x.dtype)


def through_the_other_layout(x, positions, base=BASE):
    """Permute, turn halves, permute back."""
    return rotary.from_half_split(rotary.apply_rotary_half_split(rotary.to_half_split(x), positions, base))


ACCEPTED_ROTATIONS = (
    by_complex_numbers,
    with_neighbors_swapped,
    writing_into_an_empty_tensor,
    by_matrices,
    through_the_other_layout,
)
