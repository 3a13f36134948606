"""What dropout did, told from its result alone: which share fell, what happened to the rest, and how it was drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from autograder.compare import difference
from autograder.draw import Draw
from autograder.program import Program, Run, call
from autograder.values import Raised

TOKENS, WIDTH = 160, 125  # 20,000 entries: an honest share then stays within 0.02 of p (six standard deviations)
SHARE_BAND = 0.03
SCALE_BAND = 1e-3
NEVER_ZERO = 3.0  # mean of the entries, in standard deviations of them


def one_call(draw: Draw, p: float, training: bool) -> Program:
    """Call once, on many numbers."""
    return call(_numbers(draw), p, training, generator=draw.generator())


def equal_generators(draw: Draw, low: float, high: float) -> Program:
    """Call twice in training, with generators of the same seed."""
    x, p, generator = _numbers(draw), draw.number(low, high), draw.generator()
    return call(x, p, True, generator=generator).call(x, p, True, generator=generator)


def different_generators(draw: Draw, low: float, high: float) -> Program:
    """Call twice in training, with generators of different seeds."""
    x, p = _numbers(draw), draw.number(low, high)
    return call(x, p, True, generator=draw.generator()).call(x, p, True, generator=draw.generator())


def batch_of_sequences(draw: Draw, low: float, high: float) -> Program:
    """Call twice in training on a batch: each of its rows should have chances of its own."""
    x, p, generator = draw.normal(4, TOKENS // 4, WIDTH, mean=NEVER_ZERO), draw.number(low, high), draw.generator()
    return call(x, p, True, generator=generator).call(x, p, True, generator=generator)


def _numbers(draw: Draw) -> Tensor:
    return draw.normal(TOKENS, WIDTH, mean=NEVER_ZERO)


@dataclass(frozen=True)
class Drops:
    """What one result shows: the share that fell, the one factor on the rest, and whether whole lines fell."""

    share: float
    factor: float | None
    lines: str | None

    def like(self, other: Drops) -> bool:
        """Tell whether two results follow one rule."""
        if self.lines != other.lines or (self.factor is None) != (other.factor is None):
            return False
        near = self.factor is None or abs(self.factor / (other.factor or 1) - 1) < SCALE_BAND
        # Where whole lines fall, few chances were drawn and the share says little.
        return near and (self.lines is not None or abs(self.share - other.share) < SHARE_BAND)


def drops(x: Tensor, result: Tensor) -> Drops:
    """Read from a result what was done to `x`."""
    fallen = result == 0
    factors = (result / x)[~fallen]
    factor = None
    if factors.numel() and bool(torch.isfinite(factors).all()):
        middle = factors.median().item()
        factor = middle if bool(((factors / middle - 1).abs() < SCALE_BAND).all()) else None
    lines = None
    if 0 < int(fallen.sum()) < fallen.numel():
        if bool((fallen == fallen[..., :1]).all()):
            lines = "token"
        elif bool((fallen == fallen.flatten(0, -2)[0]).all()):
            lines = "feature"
        elif fallen.ndim > 2 and bool((fallen == fallen[:1]).all()):
            lines = "place of the sequences"
    return Drops(fallen.double().mean().item(), factor, lines)


def drops_as_asked(program: Program, found: Run) -> str | None:
    """Judge results of training by share, scale, structure and generator."""
    for step, outcome in zip(program.steps, found.outcomes, strict=True):
        x, p = step.args[:2]
        if not _readable(x, outcome) or not bool(torch.isfinite(outcome).all()):
            return difference(x, outcome, "the result")
        sentence = _wrong_drops(drops(x, outcome), p)
        if sentence:
            return sentence
    equal = torch.equal(*found.outcomes)
    if _same_generator(program) and not equal:
        return "two calls with equal generators give different results"
    if not _same_generator(program) and equal:
        return "two calls with different generators drop the very same entries"
    return None


def same_belief(program: Program, first: Run, second: Run) -> bool:
    """Tell whether two runs follow one rule, although they drew different entries."""
    x = program.steps[0].args[0]
    pairs = list(zip(first.outcomes, second.outcomes, strict=True))
    if not all(_readable(x, outcome) for pair in pairs for outcome in pair):
        return _equal_failures(pairs)
    equal = [torch.equal(*run.outcomes) for run in (first, second)]
    return equal[0] == equal[1] and all(drops(x, one).like(drops(x, other)) for one, other in pairs)


def _wrong_drops(seen: Drops, p: float) -> str | None:
    if seen.lines:
        return f"entries do not fall one by one: a {seen.lines} is dropped or kept as a whole"
    if abs(seen.share - p) > SHARE_BAND:
        return f"with p = {p:.3f} about {p:.1%} of the entries should be 0, but {seen.share:.1%} are"
    if seen.factor is None:
        return "the entries that are kept are not all multiplied by one and the same number"
    if abs(seen.factor * (1 - p) - 1) > SCALE_BAND:
        return (
            f"with p = {p:.3f} the entries that are kept should be multiplied by {1 / (1 - p):.4g}, "
            f"but yours are by {seen.factor:.4g}"
        )
    return None


def _same_generator(program: Program) -> bool:
    first, second = (step.kwargs["generator"] for step in program.steps)
    return first == second


def _readable(x: Tensor, outcome: Any) -> bool:
    return isinstance(outcome, Tensor) and outcome.shape == x.shape and outcome.dtype == x.dtype


def _equal_failures(pairs: list[tuple[Any, Any]]) -> bool:
    return all(isinstance(one, Raised) and one == other for one, other in pairs)
