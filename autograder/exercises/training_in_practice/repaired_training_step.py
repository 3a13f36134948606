"""Check `repaired_training_step`: the bug hunt on the order of a step's parts."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import nn

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.training_in_practice import CHAPTER
from autograder.program import Program
from autograder.values import Named
from course_lib.training.clipping import clip_gradients
from course_lib.training.step import training_step

VOCABULARY, WIDTH, BATCH, SEQUENCE = 7, 4, 2, 5
FIRST_RATE = 5.0  # the optimizer's own, which no step should use


class Descent(torch.optim.Optimizer):
    """Plain gradient descent with momentum.

    The framework's own optimizers load a compiler at their first step, for which a check has no time to wait.
    """

    def __init__(self, parameters: Iterable[torch.Tensor], lr: float, momentum: float) -> None:
        self.momentum = momentum
        self.param_groups = [{"params": list(parameters), "lr": lr}]
        self.velocity: dict[torch.Tensor, torch.Tensor] = {}

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients."""
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None if set_to_none else torch.zeros_like(parameter)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Move every parameter that has a gradient."""
        for parameter in self.param_groups[0]["params"]:
            if parameter.grad is not None:
                before = self.velocity.get(parameter, torch.zeros_like(parameter))
                self.velocity[parameter] = self.momentum * before + parameter.grad
                parameter.sub_(self.velocity[parameter], alpha=self.param_groups[0]["lr"])


class Desk:
    """A small model and the optimizer that moves it."""

    def __init__(self, embedding: torch.Tensor, weight: torch.Tensor, momentum: float) -> None:
        self.model = nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False))
        self.model.to(weight.dtype)
        self.model.load_state_dict({"0.weight": embedding, "1.weight": weight})
        self.optimizer = Descent(self.model.parameters(), lr=FIRST_RATE, momentum=momentum)

    @property
    def weights(self) -> list[torch.Tensor]:
        """Give the weights as they are now."""
        return list(self.model.parameters())


def drawn(draw: Draw, steps: int, max_norms: tuple[float, float], momentum: float = 0.0) -> Program:
    """Take several steps, each with a rate and a longest norm of its own."""
    shape = (draw.normal(VOCABULARY, WIDTH), draw.normal(VOCABULARY, WIDTH), momentum)
    program = Program()
    for _ in range(steps):
        inputs, targets = (draw.integers(0, VOCABULARY, BATCH, SEQUENCE) for _ in range(2))
        model, optimizer = (Named("Desk", shape, part=part) for part in ("model", "optimizer"))
        rate, max_norm = draw.number(0.2, 1.0), draw.number(*max_norms)
        program = program.call(model, inputs, targets, optimizer, rate, max_norm)
    return program.see(Named("Desk", shape, part="weights"), "the weights afterwards")


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=training_step,
    name="repaired_training_step",
    named={"Desk": Desk},
    tolerance={"float32": 1e-3, "float64": 1e-4},  # the framework adds 1e-6 to the length
    cases=[
        Case("one step, cut", lambda draw: drawn(draw, 1, (0.05, 0.1))),
        Case("three steps, none cut", lambda draw: drawn(draw, 3, (50.0, 90.0))),
        Case("four steps, all cut", lambda draw: drawn(draw, 4, (0.05, 0.1)), hidden=True, dtype="float64"),
        Case("steps with momentum", lambda draw: drawn(draw, 4, (0.1, 0.3), 0.9), hidden=True, dtype="float64"),
    ],
)


def _step(model, inputs, targets, optimizer, rate, max_norm, *, clears="first", clips="first", sets="first"):
    if clears == "first":
        optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
    loss.backward()
    if clears == "too late":
        optimizer.zero_grad()
    total = clip_gradients(model.parameters(), max_norm) if clips == "first" else 0.0
    if sets == "first":
        _set_rate(optimizer, rate)
    optimizer.step()
    if clips == "late":
        total = clip_gradients(model.parameters(), max_norm)
    if sets == "late":
        _set_rate(optimizer, rate)
    return loss.item(), total


def _set_rate(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate


@exercise.misconception("""
    All three reports still hold. Write down for each line what it reads and what it changes: which lines must stand
    before `optimizer.step()`, and which before `loss.backward()`?
""")
def nothing_mended(model, inputs, targets, optimizer, rate, max_norm):
    return _step(model, inputs, targets, optimizer, rate, max_norm, clears="never", clips="late", sets="late")


@exercise.misconception("""
    The first report still holds: gradients are never cleared. `backward` **adds** to what is there, so the second step
    follows the sum of two gradients and the hundredth the sum of a hundred.
""")
def gradients_add_up(model, inputs, targets, optimizer, rate, max_norm):
    return _step(model, inputs, targets, optimizer, rate, max_norm, clears="never")


@exercise.misconception("""
    The second report still holds: you cut the gradient after the optimizer has used it. The number for the log is
    right, and the step was as long as ever.
""")
def clips_too_late(model, inputs, targets, optimizer, rate, max_norm):
    return _step(model, inputs, targets, optimizer, rate, max_norm, clips="late")


@exercise.misconception("""
    The third report still holds: the rate is set after the step, so each step uses the one of the step before, and the
    very first the optimizer's own.
""")
def rate_too_late(model, inputs, targets, optimizer, rate, max_norm):
    return _step(model, inputs, targets, optimizer, rate, max_norm, sets="late")


@exercise.misconception("""
    Nothing moves any more: you clear the gradients between `backward` and `step`, so the optimizer finds none. Clear
    them before `backward`.
""")
def clears_too_late(model, inputs, targets, optimizer, rate, max_norm):
    return _step(model, inputs, targets, optimizer, rate, max_norm, clears="too late")


@exercise.misconception("""
    Only the rate is mended. Two reports are left: gradients add up, and they are cut after the step.
""")
def only_the_rate_mended(model, inputs, targets, optimizer, rate, max_norm):
    return _step(model, inputs, targets, optimizer, rate, max_norm, clears="never", clips="late")


@exercise.misconception("""
    Only the clipping is mended. Two reports are left: gradients add up, and the rate comes one step late.
""")
def only_the_clipping_mended(model, inputs, targets, optimizer, rate, max_norm):
    return _step(model, inputs, targets, optimizer, rate, max_norm, clears="never", sets="late")


@exercise.misconception("""
    Only the clearing is mended. Two reports are left: the gradient is cut after the step, and the rate comes one step
    late.
""")
def only_the_clearing_mended(model, inputs, targets, optimizer, rate, max_norm):
    return _step(model, inputs, targets, optimizer, rate, max_norm, clips="late", sets="late")


@exercise.misconception("""
    You cut before `backward`, when the gradients of this batch are not there yet.
""")
def clips_before_the_backward_pass(model, inputs, targets, optimizer, rate, max_norm):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
    total = clip_gradients(model.parameters(), max_norm)
    loss.backward()
    _set_rate(optimizer, rate)
    optimizer.step()
    return loss.item(), total


@exercise.alternative
def clearing_at_the_end(model, inputs, targets, optimizer, rate, max_norm):
    logits = model(inputs)
    loss = F.cross_entropy(logits.transpose(1, 2), targets)
    loss.backward()
    total = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.param_groups[0]["lr"] = rate
    optimizer.step()
    optimizer.zero_grad()
    return loss.item(), total.item()


@exercise.alternative
def clearing_the_model(model, inputs, targets, optimizer, rate, max_norm):
    for group in optimizer.param_groups:
        group["lr"] = rate
    model.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(inputs).reshape(-1, VOCABULARY), targets.reshape(-1))
    loss.backward()
    total = clip_gradients(list(model.parameters()), max_norm)
    optimizer.step()
    return loss.detach(), torch.tensor(total)
