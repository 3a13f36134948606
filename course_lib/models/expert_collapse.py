"""A task made for experts, and the loads of a Switch layer that learns it, with the balance loss and without.

Tokens come in kinds, and each kind wants a linear map of its own. One expert has a head start in the router: through
a feature that is 1 in every token, its score begins higher than those of the others.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.models.switch import SwitchFeedForward, balance_loss
from course_lib.training.loop import forever, train

KINDS, FEATURES, HIDDEN, BATCH = 8, 16, 32, 256
SPREAD = 2.0  # standard deviation of the kinds' centers; a token lies about its center with 1
STEPS, RATE = 800, 0.003
RECORD_EVERY = 50  # steps between two loads that are kept
AVERAGED = 50  # the last steps, over which the error is averaged

Batch = tuple[Float[Tensor, "token feature"], Float[Tensor, "token wanted"]]


@dataclass(frozen=True)
class ExpertRun:
    """What a training of a Switch layer came to.

    Args:
        error: mean squared error of the last steps.
        loads: for every recorded step, the share of the tokens that each expert was chosen for.
        steps: the recorded steps.
    """

    error: float
    loads: list[list[float]]
    steps: list[int]


class KindsTask:
    """Tokens of several kinds around centers of their own; wanted is the kind's map applied to what is no center."""

    def __init__(self, seed: int = 0) -> None:
        """Draw the centers and the maps."""
        generator = torch.Generator().manual_seed(seed)
        self.centers = SPREAD * torch.randn(KINDS, FEATURES, generator=generator)
        self.maps = torch.randn(KINDS, FEATURES, FEATURES, generator=generator) / FEATURES**0.5

    def batch(self, generator: torch.Generator) -> Batch:
        """Draw tokens, each with a last feature that is 1, and what should become of them."""
        kind = torch.randint(KINDS, (BATCH,), generator=generator)
        detail = torch.randn(BATCH, FEATURES, generator=generator)
        wanted = torch.einsum("ni,nij->nj", detail, self.maps[kind])
        return torch.cat([self.centers[kind] + detail, torch.ones(BATCH, 1)], dim=1), wanted


def train_experts(balance_weight: float, head_start: float, steps: int = STEPS) -> ExpertRun:
    """Train a Switch layer with room for all tokens; equal arguments give equal runs.

    Args:
        balance_weight: of the balance loss in what is minimized.
        head_start: how much higher the score of expert 0 begins.
        steps: of training; a quick run takes a few.
    """
    torch.manual_seed(0)
    layer, task = SwitchFeedForward(FEATURES + 1, HIDDEN, KINDS, capacity_factor=float(KINDS)), KindsTask()
    with torch.no_grad():
        layer.router.weight[0, -1] += head_start
    errors, loads, generator = [], [], torch.Generator().manual_seed(1)

    def error_and_balance(model: nn.Module, batch: Batch) -> Tensor:
        error = F.mse_loss(model(batch[0])[:, :FEATURES], batch[1])
        errors.append(error.item())
        assert layer.routing is not None, "a layer that has just run knows where it sent what"
        loads.append(layer.routing.loads.tolist())
        return error + balance_weight * balance_loss(model)

    train(layer, forever(lambda: task.batch(generator)), steps=steps, learning_rate=RATE, loss=error_and_balance)
    kept = sorted({*range(0, len(loads), RECORD_EVERY), len(loads) - 1})
    last = errors[-AVERAGED:]
    return ExpertRun(sum(last) / len(last), [loads[step] for step in kept], kept)
