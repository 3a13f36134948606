"""Cases about what holds for every right model, whatever its weights: a reading of the run, and its sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from autograder.draw import Draw
from autograder.exercise import Case
from autograder.program import Program, Run
from autograder.values import Raised, describe

Tensor = torch.Tensor
MOVES = 2e-5  # of the largest number; rounding in float32 stays below it, and what a model reads moves it far more


@dataclass(frozen=True)
class Trouble:
    """What is wrong with a run: a kind, by which beliefs are told apart, and a sentence."""

    kind: str
    words: str


Reading = Callable[[Program, Run], Trouble | None]


def invariant(name: str, program: Callable[[Draw], Program], reading: Reading, hidden: bool = False) -> Case:
    """Make a case that reads a run instead of comparing it; two runs are alike if the same is wrong with both."""

    def judge(drawn: Program, found: Run) -> str | None:
        trouble = reading(drawn, found)
        return trouble and trouble.words

    def alike(drawn: Program, theirs: Run, found: Run) -> bool:
        troubles = [reading(drawn, run) for run in (theirs, found)]
        kinds = {trouble and trouble.kind for trouble in troubles}
        return len(kinds) == 1

    return Case(name, program, hidden=hidden, judge=judge, alike=alike)


def not_of_shape(outcomes: tuple[Any, ...], shape: tuple[int, ...], axes: str) -> Trouble | None:
    """Find the first outcome that is no finite floating tensor of a shape."""
    for outcome in outcomes:
        if isinstance(outcome, Raised):
            return Trouble(f"raised {outcome.type_name}", f"your code raised {describe(outcome)}")
        if not isinstance(outcome, Tensor) or not outcome.is_floating_point():
            return Trouble(f"type {type(outcome).__name__}", f"expected logits, {axes}, and got {describe(outcome)}")
        if outcome.shape != shape:
            return Trouble(
                f"shape {tuple(outcome.shape)}", f"expected the shape {shape}, {axes}, and got {tuple(outcome.shape)}"
            )
        if not outcome.isfinite().all():
            return Trouble("not finite", "the result holds NaN or an infinite number")
    return None


def moved(before: Tensor, after: Tensor) -> Tensor:
    """Tell for each vector along the last axis whether it changed by more than rounding."""
    return (after - before).abs().amax(-1) > MOVES * before.abs().max().clamp(min=torch.finfo(before.dtype).tiny)


def are_probabilities(logits: Tensor) -> bool:
    """Tell whether all rows are shares: none below 0, and a sum of 1."""
    sums = logits.sum(-1)
    return bool((logits >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=MOVES)


PROBABILITIES = Trouble(
    "probabilities", "every row sums to 1 and has no negative number, so these are probabilities and not logits"
)


def quiet(program: Program) -> Program:
    """Put a model that was built into the mode in which nothing is dropped out."""
    return program.method("eval", observe=False)
