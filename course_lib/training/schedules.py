"""Learning rates that change with the step: climb first, since a fresh model cannot take large steps, then fall."""

import math


def noam_rate(step: int, d_model: int, warmup: int) -> float:
    """Give the rate of the original transformer: d_model^-½ · min(step^-½, step · warmup^-1½).

    The two arms meet at step = warmup, the peak.

    Args:
        step: counts from 1.
        d_model: features of a token.
        warmup: steps of the climb.

    Raises:
        ValueError: one of the three is below 1, where the formula divides by 0 or means nothing.

    Source: Vaswani et al. 2017, §5.3, eq. 3, arXiv 1706.03762.
    """
    for name, value in (("step", step), ("d_model", d_model), ("warmup", warmup)):
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value}.")
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def cosine_rate(step: int, total: int, peak: float, warmup: int, floor: float = 0.0) -> float:
    """Climb in a straight line to `peak`, then fall along half a cosine wave to `floor`, and stay there.

    rate = peak · step / warmup                                                    for step < warmup
    rate = floor + (peak - floor) · ½ (1 + cos(π (step - warmup) / (total - warmup)))    up to total

    Args:
        step: counts from 0.
        total: the step from which on the rate is `floor`.
        peak: the rate at step `warmup`.
        warmup: steps of the climb; 0 starts at the peak.
        floor: the last rate.

    Raises:
        ValueError: `step` or `warmup` is negative, or the climb does not end before `total`.

    Source: Loshchilov and Hutter 2017, §3, eq. 5, arXiv 1608.03983; GPT-3 has a climb before it and 10 % of the peak
    as floor (Brown et al. 2020, appendix B, arXiv 2005.14165). The paper restarts the wave; here it runs once.
    """
    _require_room(step, total, warmup)
    if step < warmup:
        return peak * step / warmup
    if step >= total:
        return floor
    share = (step - warmup) / (total - warmup)
    return floor + (peak - floor) * (1 + math.cos(math.pi * share)) / 2


def linear_rate(step: int, total: int, peak: float, warmup: int) -> float:
    """Climb in a straight line to `peak` at step `warmup`, then fall in a straight line to 0 at `total`.

    Args:
        step: counts from 0.
        total: the step from which on the rate is 0.
        peak: the rate at step `warmup`.
        warmup: steps of the climb; 0 starts at the peak.

    Raises:
        ValueError: `step` or `warmup` is negative, or the climb does not end before `total`.

    Source: Devlin et al. 2018, appendix A.2, arXiv 1810.04805.
    """
    _require_room(step, total, warmup)
    if step < warmup:
        return peak * step / warmup
    return peak * max(0.0, (total - step) / (total - warmup))


def _require_room(step: int, total: int, warmup: int) -> None:
    for name, value in (("step", step), ("warmup", warmup)):
        if value < 0:
            raise ValueError(f"`{name}` must not be negative, got {value}.")
    if warmup >= total:
        raise ValueError(f"`warmup` must end before `total`, got warmup={warmup} and total={total}.")
