"""Train a small model while a reader watches, and shorten to a few steps while a grader waits."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from IPython.display import HTML, DisplayHandle
from torch import Tensor, nn

from course_lib.frontend import interactive
from course_lib.settings import steps as choose_steps

REDRAWS = 50  # per training run: often enough to watch, too rarely to slow the training
DIGITS_SHOWN = 3  # significant digits of a loss


def sequence_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Average the cross-entropy over all places of a batch; a model may return weights after its logits.

    loss = -mean log softmax(logits)[target]
    """
    inputs, targets = batch
    output = model(inputs)
    logits = output[0] if isinstance(output, tuple) else output
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


def train(
    model: nn.Module,
    batches: Iterable,
    steps: int,
    learning_rate: float,
    *,
    short: int = 5,
    loss: Callable[[nn.Module, Any], Tensor] = sequence_loss,
    schedule: Callable[[float], float] | None = None,
) -> list[float]:
    """Minimize a loss with Adam, one batch a step; return the loss of every step.

    With a `schedule`, the rate of a step is `learning_rate` times its value, given the share of steps that are done.
    A quick run (nbgrader's, or with COURSE_QUICK set) takes at most `short` steps. The model is left in
    training mode; a loss that is not finite stops the run.

    Raises:
        ValueError: `batches` ran out before the last step, or the loss became NaN or infinite.
    """
    wanted, steps = steps, choose_steps(steps, min(short, steps))
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    history: list[float] = []
    progress = _Progress(steps)
    model.train()
    source = iter(batches)
    for step in range(steps):
        try:
            batch = next(source)
        except StopIteration:
            raise ValueError(f"`batches` ended after {step} of {steps} steps; pass an endless one.") from None
        value = loss(model, batch)
        history.append(value.item())
        if not torch.isfinite(value):
            raise ValueError(f"The loss became {history[-1]} at step {step}; try a lower `learning_rate`.")
        optimizer.zero_grad()
        value.backward()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * (schedule(step / steps) if schedule else 1)
        optimizer.step()
        progress.show(history)
    progress.finish(history)
    if steps < wanted:
        print(f"Shortened from {wanted} steps, since this is a quick run: the text describes the full one.")
    return history


def forever(draw: Callable[[], tuple[Tensor, Tensor]]) -> Iterable[tuple[Tensor, Tensor]]:
    """Make an endless stream of batches from a function that draws one."""
    while True:
        yield draw()


class _Progress:
    """A bar that moves in a notebook; one plain line at the end everywhere else."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.every = max(1, steps // REDRAWS)
        self.handle = DisplayHandle() if interactive() else None
        if self.handle is not None:
            self.handle.display(HTML(self._bar(0, "starting")))

    def show(self, history: list[float]) -> None:
        done = len(history)
        if self.handle is not None and done % self.every == 0:
            self.handle.update(HTML(self._bar(done, f"step {done} of {self.steps}, {_loss(history[-1])}")))

    def finish(self, history: list[float]) -> None:
        text = summary(history)
        if self.handle is None:
            print(text)
        else:
            self.handle.update(HTML(self._bar(self.steps, text)))

    def _bar(self, done: int, words: str) -> str:
        bar = f'<progress value="{done}" max="{max(1, self.steps)}" aria-label="training"></progress>'
        return f"<div>{bar} <span>{words}</span></div>"


def summary(history: list[float]) -> str:
    """Say in one line how a training went."""
    if not history:
        return "0 steps, nothing trained"
    plural = "step" if len(history) == 1 else "steps"
    return f"{len(history)} {plural}, loss {history[0]:.{DIGITS_SHOWN}g} → {history[-1]:.{DIGITS_SHOWN}g}"


def _loss(value: float) -> str:
    return f"loss {value:.{DIGITS_SHOWN}g}"
