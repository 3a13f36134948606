"""What the checks of modules share: class names for wrong beliefs, a property, and a judge of several right forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from autograder.compare import difference, same
from autograder.interpreter import run
from autograder.program import Program, Run

Tensor = torch.Tensor


def called(name: str, made: type[nn.Module]) -> type[nn.Module]:
    """Give a class the learner's name, which PyTorch writes into its messages, by which beliefs are told apart."""
    return type(name, (made,), {})


def tanh_gelu(x: Tensor) -> Tensor:
    """Approximate GELU by its form with tanh."""
    return F.gelu(x, approximate="tanh")


def repeatable(program: Program, found: Run) -> str | None:
    """Look at two calls with the same tokens, where a case has them."""
    first, second = found.outcomes
    if first.shape != second.shape or torch.equal(first, second):
        return None
    return "two calls with the same tokens give different results: is there a dropout inside? None is asked for here"


def equals_one_of(*accepted: Callable[..., Any]) -> Callable[[Program, Run], str | None]:
    """Make a judge that lets pass what equals any of several right solutions; the first one is quoted."""

    def judge(program: Program, found: Run) -> str | None:
        for solution in accepted:
            wanted = run(program, solution, {}).outcomes
            if len(wanted) == len(found.outcomes) and all(map(same, wanted, found.outcomes)):
                return None
        wanted = run(program, accepted[0], {}).outcomes
        pairs = zip(wanted, found.outcomes, strict=False)
        sentences = (difference(expected, came, "the result") for expected, came in pairs)
        return next((sentence for sentence in sentences if sentence), "your code stopped early")

    return judge
