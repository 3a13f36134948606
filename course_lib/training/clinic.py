"""Eight training runs: a healthy one, six with a fault that happens to everybody, and one of these six treated."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from course_lib.masks import masked_softmax
from course_lib.models.watched import WatchedModel, careless_softmax
from course_lib.settings import steps as choose_steps
from course_lib.training.diagnosis import FAULTS
from course_lib.training.initialization import initial_loss
from course_lib.training.recorder import Record, Recorder
from course_lib.training.schedules import noam_rate

DIGITS, HALF = 10, 5  # digits that exist, and how many are drawn before they are repeated
BATCH, STEPS, SHORT = 32, 100, 3
SILENT_STEPS = 40  # of a run in which nothing happens
D_MODEL, PEAK, WARMUP = 32, 3e-3, 20
DECAY = 0.5  # strong, so that weights cannot outgrow a rate that is too high
DEEP, DEEPER, NOAM_WARMUP, NOAM_FACTOR = 6, 12, 40, 0.2
COLLAPSING, OVERFLOWING = 100.0, 30.0  # times the rate, for queries and keys alone
TOO_HIGH = 100.0  # times the rate, for all
HEALTHY = "healthy"


def repeated_digits(
    batch: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch sequence"], Int[Tensor, "batch sequence"]]:
    """Draw digits and the same digits once more, as inputs and as next tokens to be predicted.

    The second half can be known, the first cannot.
    """
    drawn = torch.randint(DIGITS, (batch, HALF), generator=generator)
    text = torch.cat([drawn, drawn], dim=-1)
    return text[:, :-1], text[:, 1:]


def possible_loss() -> float:
    """Give the lowest loss that honest prediction can reach: the first half, less its given first digit, is chance."""
    return (HALF - 1) / (2 * HALF - 1) * initial_loss(DIGITS)


def climbing(step: int) -> float:
    """Climb evenly to the peak and stay."""
    return PEAK * min(1.0, step / WARMUP)


@dataclass(frozen=True)
class Patient:
    """How a run is set up.

    Args:
        model: what is unusual about the model, as arguments of `WatchedModel`.
        rate: learning rate by step, counted from 1.
        query_key_factor: multiplies the rate of the projections of queries and keys.
        softmax: as in `WatchedModel`.
        decay: of the weights, as in AdamW.
        steps: how long the run is watched.
    """

    model: dict[str, Any] = field(default_factory=dict)
    rate: Callable[[int], float] = climbing
    query_key_factor: float = 1.0
    softmax: Callable[[Tensor, Tensor], Tensor] = masked_softmax
    decay: float = DECAY
    steps: int = STEPS


def _noam(warmup: int) -> Callable[[int], float]:
    return lambda step: NOAM_FACTOR * noam_rate(step, D_MODEL, warmup)


_POST_NORM = {"num_layers": DEEP, "kind": "post-norm"}
PATIENTS = {
    HEALTHY: Patient(),
    "learning rate too high": Patient(rate=lambda step: TOO_HIGH * climbing(step)),
    "no warm-up": Patient(model=_POST_NORM, rate=_noam(1)),
    # Without decay: it would move weights that no gradient moves, and hide that nothing does.
    "vanishing gradient": Patient(model={"num_layers": DEEPER, "kind": "neither"}, decay=0.0, steps=SILENT_STEPS),
    "mask leaks the future": Patient(model={"first_hidden": 2}),
    "heads collapsed": Patient(query_key_factor=COLLAPSING),
    "overflow": Patient(query_key_factor=OVERFLOWING, softmax=careless_softmax),
    "no warm-up, treated": Patient(model=_POST_NORM, rate=_noam(NOAM_WARMUP)),
}


@dataclass(frozen=True)
class Stay:
    """What is left of a patient's stay: the model as it ended, and the record."""

    model: WatchedModel
    record: Record


def admit(name: str, seed: int = 0) -> Stay:
    """Train a patient under observation; a run that is no longer finite ends there.

    A quick run (nbgrader's, or with COURSE_QUICK set) takes three steps.

    Raises:
        ValueError: there is no such patient.
    """
    if name not in PATIENTS:
        raise ValueError(f"`name` must be one of {', '.join(map(repr, PATIENTS))}, got {name!r}.")
    patient = PATIENTS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = WatchedModel(DIGITS, 2 * HALF, d_model=D_MODEL, softmax=patient.softmax, **patient.model)
    generator = torch.Generator().manual_seed(seed)
    optimizer = _optimizer(model, patient)
    recorder = Recorder(model)
    for step in range(1, choose_steps(patient.steps, SHORT) + 1):
        for group in optimizer.param_groups:
            group["lr"] = group["factor"] * patient.rate(step)
        inputs, targets = repeated_digits(BATCH, generator)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        recorder.read_gradients(loss.item())
        optimizer.step()
        recorder.read_update()
        if not math.isfinite(loss.item()):
            break
    return Stay(model, recorder.record)


def _optimizer(model: WatchedModel, patient: Patient) -> torch.optim.Optimizer:
    choosing = [p for name, p in model.named_parameters() if ".w_q." in name or ".w_k." in name]
    chosen = {id(parameter) for parameter in choosing}
    others = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
    factor = patient.query_key_factor
    groups = [
        {"params": others, "factor": 1.0, "weight_decay": patient.decay},
        {"params": choosing, "factor": factor, "weight_decay": patient.decay / factor},
    ]
    return torch.optim.AdamW(groups)


assert set(FAULTS) < set(PATIENTS), "every fault has a patient"
