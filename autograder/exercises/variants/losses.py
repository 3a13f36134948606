"""Beliefs about a mean surprise that the two losses of the chapter share."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from autograder.program import Program, Run
from autograder.values import Raised

IGNORED = -100


def surprises(logits: Tensor, targets: Tensor, ignored: int = IGNORED) -> tuple[Tensor, Tensor]:
    """Give -log P(target) of every place, 0 where it is not counted, and which places are."""
    counted = targets != ignored
    safe = targets.masked_fill(~counted, 0)
    found = -logits.log_softmax(-1).gather(-1, safe[..., None]).squeeze(-1)
    return found.masked_fill(~counted, 0), counted


def mean(logits: Tensor, targets: Tensor, ignored: int = IGNORED) -> Tensor:
    """Average over the places that count; 0 if none does."""
    found, counted = surprises(logits, targets, ignored)
    return found.sum() / counted.sum().clamp(min=1)


def mean_over_all(logits: Tensor, targets: Tensor, ignored: int = IGNORED) -> Tensor:
    """Divide by the number of all places."""
    found, counted = surprises(logits, targets, ignored)
    return found.sum() / max(1, counted.numel())


def mean_of_rows(logits: Tensor, targets: Tensor, ignored: int = IGNORED) -> Tensor:
    """Average every row, and then the rows."""
    found, counted = surprises(logits, targets, ignored)
    return (found.sum(-1) / counted.sum(-1).clamp(min=1)).mean()


def log_of_mean(logits: Tensor, targets: Tensor, ignored: int = IGNORED) -> Tensor:
    """Average probabilities, and take the logarithm once."""
    found, counted = surprises(logits, targets, ignored)
    share = ((-found).exp() * counted).sum() / counted.sum().clamp(min=1)
    return -(share + (~counted.any())).log()


def softmax_first(logits: Tensor, targets: Tensor, ignored: int = IGNORED) -> Tensor:
    """Pass probabilities on as if they were logits."""
    return mean(logits.softmax(-1), targets, ignored)


def in_bits(logits: Tensor, targets: Tensor, ignored: int = IGNORED) -> Tensor:
    """Take logarithms to the base 2."""
    return mean(logits, targets, ignored) / math.log(2)


def framework(logits: Tensor, targets: Tensor, ignored: int = IGNORED) -> Tensor:
    """Call the framework's loss, which is NaN where nothing is counted."""
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=ignored)


def one_number(program: Program, found: Run) -> str | None:
    """Give a sentence when a loss has axes."""
    outcome = found.outcomes[0]
    if isinstance(outcome, Raised) or not isinstance(outcome, torch.Tensor) or outcome.ndim == 0:
        return None
    return f"a loss is one number, a tensor without axes, but yours has the shape {tuple(outcome.shape)}"
