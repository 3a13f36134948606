"""One step of training, with its parts in the order in which they must come."""

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.training.clipping import clip_gradients


def training_step(
    model: nn.Module,
    inputs: Int[Tensor, "batch sequence"],
    targets: Int[Tensor, "batch sequence"],
    optimizer: torch.optim.Optimizer,
    rate: float,
    max_norm: float,
) -> tuple[float, float]:
    """Take one step: forget old gradients, go forward and back, clip, set the rate, move.

    Args:
        model: gives logits (batch, sequence, vocab).
        inputs: token ids.
        targets: the token that each place should predict.
        optimizer: moves the model's parameters.
        rate: learning rate of this step.
        max_norm: length at which the gradient is cut.

    Returns:
        The loss before the step, and the length of the gradient before it was cut.

    Raises:
        ValueError: `max_norm` is not above 0.
    """
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
    loss.backward()
    total = clip_gradients(model.parameters(), max_norm)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    return loss.item(), total
