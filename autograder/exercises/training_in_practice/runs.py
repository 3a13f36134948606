"""Draw the record of a training run: healthy instruments, but for what one fault does to them."""

from __future__ import annotations

import math

import torch

from autograder.draw import Draw

NOISE = 0.08  # of the logarithm; what healthy instruments waver by
SLOWLY = 3.0  # times that a settling instrument goes through its decay within a run
HEALTHY_GRADIENT, HEALTHY_UPDATE = (0.3, 1.5), (6e-4, 2e-3)
HEALTHY_SCORE, STALLED = (2.0, 6.0), (0.75, 0.95)  # the latter as a share of the first loss


def recorded(draw: Draw, fault: str, steps: int) -> dict[str, torch.Tensor]:
    """Draw the series of a run with this fault; vocabulary, length of the texts and noise differ from run to run."""
    first = math.log(draw.integer(8, 5000))
    seen = math.log(draw.integer(8, 200))
    run = {
        "loss": _falling(draw, steps, first, first * draw.number(0.45, 0.6)),
        "grad_norm": _level(draw, steps, draw.number(*HEALTHY_GRADIENT)),
        "max_score": _level(draw, steps, draw.number(*HEALTHY_SCORE)),
        "attention_entropy": _falling(draw, steps, 0.95 * seen, 0.6 * seen),
        "update_ratio": _level(draw, steps, draw.number(*HEALTHY_UPDATE)),
    }
    run |= CHANGES[fault](draw, steps, first, seen)
    run["loss"][0] = first  # a fresh model, whatever becomes of it
    return {name: draw.array(series, dtype="float64") for name, series in run.items()}


def _noise(draw: Draw, steps: int, size: float = NOISE) -> list[float]:
    return [math.exp(size * wobble) for wobble in draw.random.standard_normal(steps)]


def _level(draw: Draw, steps: int, level: float) -> list[float]:
    return [level * noise for noise in _noise(draw, steps)]


def _falling(draw: Draw, steps: int, start: float, end: float) -> list[float]:
    """Settle from one level to another, as a learning curve does."""
    curve = (end + (start - end) * math.exp(-SLOWLY * 2 * step / steps) for step in range(steps))
    return [value * noise for value, noise in zip(curve, _noise(draw, steps, NOISE / 4), strict=True)]


def _stalled(draw: Draw, steps: int, first: float) -> list[float]:
    return _falling(draw, steps, first, first * draw.number(*STALLED))


def _rate_too_high(draw: Draw, steps: int, first: float, seen: float) -> dict[str, list[float]]:
    """Bounce, with steps as large as a good part of the weights to the end."""
    bouncing = [first * draw.number(0.9, 2.2) for _ in range(steps)]
    return {
        "loss": bouncing,
        "grad_norm": [draw.number(3, 40) for _ in range(steps)],
        "update_ratio": _level(draw, steps, draw.number(0.15, 0.5)),
    }


def _no_warm_up(draw: Draw, steps: int, first: float, seen: float) -> dict[str, list[float]]:
    """Jump in the first steps, which are far too large; the rate falls, and the damage stays."""
    burst = max(3, steps // 20)
    jump, ratio, calm = draw.number(1.5, 2.5), draw.number(0.2, 0.5), draw.number(*HEALTHY_UPDATE)
    early = [math.exp(-2 * step / burst) for step in range(steps)]
    return {
        "loss": [
            first * (1 + (jump - 1) * share) * noise
            for share, noise in zip(early, _noise(draw, steps, NOISE / 8), strict=True)
        ],
        "grad_norm": [(0.4 + 20 * share) * noise for share, noise in zip(early, _noise(draw, steps), strict=True)],
        "update_ratio": [
            (calm + ratio * share) * noise for share, noise in zip(early, _noise(draw, steps), strict=True)
        ],
    }


def _vanishing(draw: Draw, steps: int, first: float, seen: float) -> dict[str, list[float]]:
    """Stay where it was: hardly any gradient reaches the first block, and so hardly anything moves."""
    return {
        "loss": _level_loss(draw, steps, first),
        "grad_norm": _level(draw, steps, 10 ** draw.number(-10, -8)),
        "attention_entropy": _falling(draw, steps, 0.95 * seen, 0.94 * seen),
        "update_ratio": _level(draw, steps, 10 ** draw.number(-7.5, -6.5)),
    }


def _level_loss(draw: Draw, steps: int, first: float) -> list[float]:
    return [first * noise for noise in _noise(draw, steps, NOISE / 16)]


def _leak(draw: Draw, steps: int, first: float, seen: float) -> dict[str, list[float]]:
    """Learn too well: nobody foretells a text to a hundredth of a nat."""
    return {"loss": _falling(draw, steps, first, first * draw.number(0.0005, 0.001))}


def _collapse(draw: Draw, steps: int, first: float, seen: float) -> dict[str, list[float]]:
    """Pick one key for every query, and learn little from then on; no score is large enough to overflow."""
    picked = seen * draw.number(0.0005, 0.002)
    return {
        "loss": _stalled(draw, steps, first),
        "max_score": _falling(draw, steps, draw.number(*HEALTHY_SCORE), draw.number(20, 40)),
        "attention_entropy": _falling(draw, steps, 0.95 * seen, picked),
    }


def _overflow(draw: Draw, steps: int, first: float, seen: float) -> dict[str, list[float]]:
    """Learn until a score passes float32's limit; all that is computed from it is NaN from then on."""
    crash = round(steps * draw.number(0.5, 0.8))
    limit, last = 88.7, draw.number(95, 200)
    start = draw.number(*HEALTHY_SCORE)
    scores = [min(limit - 4, start * (limit / start) ** (step / crash)) for step in range(crash)]

    def ends(series: list[float]) -> list[float]:
        return [*series[:crash], *[math.nan] * (steps - crash)]

    return {
        "loss": ends(_falling(draw, steps, first, first * draw.number(0.5, 0.7))),
        "grad_norm": ends(_level(draw, steps, draw.number(*HEALTHY_GRADIENT))),
        "max_score": [*scores, *[last] * (steps - crash)],
        "attention_entropy": ends(_falling(draw, steps, 0.95 * seen, 0.5 * seen)),
        "update_ratio": ends(_level(draw, steps, draw.number(*HEALTHY_UPDATE))),
    }


CHANGES = {
    "learning rate too high": _rate_too_high,
    "no warm-up": _no_warm_up,
    "vanishing gradient": _vanishing,
    "mask leaks the future": _leak,
    "heads collapsed": _collapse,
    "overflow": _overflow,
}
