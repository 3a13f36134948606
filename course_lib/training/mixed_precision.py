"""Train in half precision without losing what is small: scale the loss, and keep a master copy of the weights.

float16 keeps 11 significant bits and nothing below 6e-8, so small gradients vanish in it, and so do updates that are
small beside their weight. A factor on the loss lifts the gradients; a float32 copy of the weights keeps the updates.
bfloat16 has float32's range and needs no factor, but with 8 significant bits it needs the copy all the more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

BACKOFF, GROWTH = 0.5, 2.0  # factors on the scale, after an overflow and after a long run without one
ADAM_AVERAGES = 2
FLOAT32, HALF = 4, 2  # bytes of a number


def loss_scale_step(
    grads: Sequence[Tensor], scale: float, good_steps: int, growth_interval: int = 2000
) -> tuple[list[Tensor] | None, float, int]:
    """Undo a loss scale, or skip the step if a gradient overflowed; then adjust the scale.

    All finite: gradient / scale in float32 at least; after `growth_interval` good steps in a row the scale doubles and
    the count starts again. Otherwise: None, half the scale, and the count starts again.

    Args:
        grads: gradients of the scaled loss.
        scale: the factor that was on the loss.
        good_steps: how many steps before this one were finite in a row.
        growth_interval: good steps after which the scale doubles.

    Raises:
        ValueError: `scale` is not positive, or `growth_interval` is below 1.

    Source: Micikevicius et al. 2018, §3.2, arXiv 1710.03740; the rule, its factors and the 2000 are those of
    torch.amp.GradScaler.
    """
    if not scale > 0:
        raise ValueError(f"`scale` must be above 0, got {scale}.")
    if growth_interval < 1:
        raise ValueError(f"`growth_interval` must be at least 1, got {growth_interval}.")
    if not all(bool(grad.isfinite().all()) for grad in grads):
        return None, scale * BACKOFF, 0
    unscaled = [grad.to(torch.promote_types(grad.dtype, torch.float32)) / scale for grad in grads]
    if good_steps + 1 == growth_interval:
        return unscaled, scale * GROWTH, 0
    return unscaled, scale, good_steps + 1


def master_weight_update(
    master: Float[Tensor, "..."], grad: Float[Tensor, "..."], rate: float
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    """Take a step on float32 weights with a half-precision gradient: master - rate · float32(grad), and its copy.

    The copy has the gradient's dtype. The product with the rate is taken in float32 too: in float16 it is lost before
    it reaches the weight.

    Raises:
        TypeError: `master` is not float32.

    Source: Micikevicius et al. 2018, §3.1, fig. 1, arXiv 1710.03740.
    """
    if master.dtype != torch.float32:
        raise TypeError(f"`master` must be float32, got {str(master.dtype).removeprefix('torch.')}.")
    updated = master - rate * grad.float()
    return updated, updated.to(grad.dtype)


def repaired_scaled_step(
    master: Float[Tensor, "..."], grad: Float[Tensor, "..."], scale: float, max_norm: float, rate: float
) -> tuple[Float[Tensor, "..."], bool]:
    """Unscale a half-precision gradient in float32, skip it if it overflowed, clip it, and step on the master copy.

    master - rate · g · min(1, max_norm / |g|), with g = float32(grad) / scale.

    Args:
        master: weights in float32.
        grad: gradient of the scaled loss.
        scale: the factor that was on the loss.
        max_norm: the longest unscaled gradient that is used as it is.
        rate: learning rate.

    Source: Micikevicius et al. 2018, §3.2, arXiv 1710.03740: unscale before clipping.
    """
    unscaled = grad.float() / scale
    norm = unscaled.norm()
    if not norm.isfinite():
        return master.clone(), False
    clipped = unscaled * min(1.0, max_norm / float(norm)) if norm > 0 else unscaled
    return master - rate * clipped, True


@dataclass(frozen=True)
class StateBytes:
    """What one parameter costs in training with Adam, in bytes."""

    weight: int
    gradient: int
    master: int
    averages: int

    @property
    def total(self) -> int:
        """Return all of them."""
        return self.weight + self.gradient + self.master + self.averages


def state_bytes(precision: str) -> StateBytes:
    """Count the bytes of one parameter under Adam: weight, gradient, master copy, two averages.

    Args:
        precision: "float32"; "mixed", half-precision weights and gradients with a float32 master copy; or "half",
            everything in half precision.

    Raises:
        ValueError: `precision` is another word.

    Source: Rajbhandari et al. 2020, §3.1, arXiv 1910.02054: 16 bytes in mixed precision.
    """
    known = {
        "float32": StateBytes(FLOAT32, FLOAT32, 0, ADAM_AVERAGES * FLOAT32),
        "mixed": StateBytes(HALF, HALF, FLOAT32, ADAM_AVERAGES * FLOAT32),
        "half": StateBytes(HALF, HALF, 0, ADAM_AVERAGES * HALF),
    }
    if precision not in known:
        raise ValueError(f"`precision` must be one of {', '.join(map(repr, known))}, got {precision!r}.")
    return known[precision]
