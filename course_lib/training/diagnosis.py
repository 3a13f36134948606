"""Name the fault of a training run from five recorded series."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

FAULTS = (
    "learning rate too high",
    "no warm-up",
    "vanishing gradient",
    "mask leaks the future",
    "heads collapsed",
    "overflow",
)
# Thresholds of ours. Each lies far from what healthy runs show and from what its fault shows.
VANISHED = 1e-5  # gradient of the first block; healthy runs lie above a hundredth
LARGE_UPDATE = 0.03  # of the weights in one step, for good; a common rule of thumb is a thousandth
LARGE_FIRST_UPDATE = 0.05
CALMS_DOWN = 10.0  # times smaller, later
PICKED = 0.05  # of the first entropy: each query then looks at one key
IMPOSSIBLE = 0.1  # of the first loss; what is drawn at random cannot be foretold that well
EARLY = 0.1  # of the steps


def diagnose(run: Mapping[str, Float[Tensor, "step"] | Sequence[float]]) -> str:
    """Name the fault of a run that has exactly one of `FAULTS`.

    Args:
        run: series with one entry per step: `loss` in nats; `grad_norm`, the length of the first block's gradient;
            `max_score`, the largest score before softmax; `attention_entropy`, nats per query; `update_ratio`, length
            of the step over length of the weights.

    Raises:
        ValueError: a series is missing or empty.
    """
    loss, gradient, score, entropy, update = (
        _series(run, name) for name in ("loss", "grad_norm", "max_score", "attention_entropy", "update_ratio")
    )
    if not all(bool(torch.isfinite(series).all()) for series in (loss, gradient, score)):
        return "overflow"
    early = max(1, round(EARLY * len(update)))
    first, settled = update[:early].max(), _half(update).median()
    if settled > LARGE_UPDATE:
        return "learning rate too high"
    if first > LARGE_FIRST_UPDATE and first > CALMS_DOWN * settled:
        return "no warm-up"
    if _half(gradient).median() < VANISHED:
        return "vanishing gradient"
    if _half(entropy)[-early:].median() < PICKED * entropy[0]:
        return "heads collapsed"
    if loss[-early:].median() < IMPOSSIBLE * loss[0]:
        return "mask leaks the future"
    return "learning rate too high"


def _half(series: Float[Tensor, "step"]) -> Float[Tensor, "later"]:
    """Give the second half."""
    return series[len(series) // 2 :]


def _series(run: Mapping[str, Float[Tensor, "step"] | Sequence[float]], name: str) -> Float[Tensor, "step"]:
    if name not in run or not len(run[name]):
        raise ValueError(f"`run` needs a series {name!r} with at least one entry, got {', '.join(run) or 'nothing'}.")
    return torch.as_tensor(run[name], dtype=torch.float64)
