"""Train deep stacks that differ in one thing only: the same strings, the same steps, the same optimizer."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data import reversal_batch
from course_lib.models.deep_reverser import DeepReverser, NewNorm
from course_lib.settings import steps as choose_steps

LENGTH, BATCH = 6, 32  # digits in a string, strings in a step
FULL_STEPS, SHORT_STEPS = 100, 2
TESTED = 500  # new strings
SEED_OF_THE_TEST = 99


@dataclass(frozen=True)
class Outcome:
    """How a training went: the loss of every step, and the share of digits right on new strings."""

    history: tuple[float, ...]
    accuracy: float


def train_deep_reverser(
    kind: str,
    num_layers: int,
    learning_rate: float,
    warmup: int = 0,
    seed: int = 0,
    norm: NewNorm = nn.LayerNorm,
    steps: int = FULL_STEPS,
) -> Outcome:
    """Train a stack with Adam; the rate climbs evenly during the first `warmup` steps and then stays.

    A quick run (nbgrader's, or with COURSE_QUICK set) takes two steps. A loss that is no longer finite ends the
    training, and the share of digits right then counts as 0.

    Source: Vaswani et al. 2017, §5.3, arXiv 1706.03762, for the climb. The paper's rate falls after it; here it stays.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = DeepReverser(LENGTH, kind, num_layers, norm=norm)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / max(1, warmup)))
    history = []
    for _ in range(choose_steps(steps, min(SHORT_STEPS, steps))):
        loss = _loss(model, generator)
        history.append(loss.item())
        if not torch.isfinite(loss):
            return Outcome(tuple(history), 0.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return Outcome(tuple(history), _accuracy(model))


def _loss(model: DeepReverser, generator: torch.Generator) -> torch.Tensor:
    tokens, targets = reversal_batch(BATCH, LENGTH, generator)
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


@torch.no_grad()
def _accuracy(model: DeepReverser) -> float:
    tokens, targets = reversal_batch(TESTED, LENGTH, torch.Generator().manual_seed(SEED_OF_THE_TEST))
    return (model(tokens).argmax(dim=-1) == targets).double().mean().item()
