"""A small real problem for searches: train on the clinic's digits, resume at will, and count the steps spent."""

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from course_lib.models.watched import WatchedModel
from course_lib.training.clinic import BATCH, DIGITS, HALF, repeated_digits

BASE: dict[str, float] = {"rate": 1e-2, "warmup": 10, "decay": 0.01, "num_heads": 4, "d_model": 32, "num_layers": 1}
VALIDATION_SEED, VALIDATION_TEXTS = 99, 200


@dataclass
class Trainee:
    """A model in training, with all that it takes to go on: its optimizer, its data, and the steps that it took."""

    model: WatchedModel
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    steps: int = 0

    def train(self, config: Mapping[str, float], steps: int) -> None:
        """Go on for some steps with the rate, climb and decay of a config."""
        for _ in range(steps):
            self.steps += 1
            for group in self.optimizer.param_groups:
                group["lr"] = config["rate"] * min(1.0, self.steps / max(1.0, config.get("warmup", 1.0)))
                group["weight_decay"] = config.get("decay", 0.0)
            inputs, targets = repeated_digits(BATCH, self.generator)
            loss = F.cross_entropy(self.model(inputs).flatten(0, 1), targets.flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def validation_loss(self) -> float:
        """Give the loss on texts that no training sees, NaN once the model has burst."""
        inputs, targets = repeated_digits(VALIDATION_TEXTS, torch.Generator().manual_seed(VALIDATION_SEED))
        return F.cross_entropy(self.model(inputs).flatten(0, 1), targets.flatten()).item()

    def weights(self) -> dict[str, Any]:
        """Copy all that another trainee needs to go on from here."""
        return copy.deepcopy({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()})

    def load(self, weights: Mapping[str, Any]) -> None:
        """Go on from another trainee's weights."""
        self.model.load_state_dict(weights["model"])
        self.optimizer.load_state_dict(copy.deepcopy(weights["optimizer"]))


def new_trainee(config: Mapping[str, float] = BASE, seed: int = 0) -> Trainee:
    """Build an untrained model of the size that a config asks for; sizes that it does not name are those of `BASE`."""
    layers, width, heads = (int(config.get(name, BASE[name])) for name in ("num_layers", "d_model", "num_heads"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = WatchedModel(DIGITS, 2 * HALF, num_layers=layers, d_model=width, num_heads=heads)
    optimizer = torch.optim.AdamW(model.parameters(), lr=BASE["rate"])
    return Trainee(model, optimizer, torch.Generator().manual_seed(seed))


def evaluate(config: Mapping[str, float], budget: int, seed: int = 0) -> float:
    """Train a fresh model for `budget` steps with a config; return its loss on texts that it never saw."""
    trainee = new_trainee(config, seed)
    trainee.train(config, budget)
    loss = trainee.validation_loss()
    return loss if math.isfinite(loss) else math.inf
