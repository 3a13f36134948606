"""The instruments of a training run: what to read at every step so that a failing run can be told from its neighbor."""

import math
import statistics
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.models.watched import WatchedBlock, WatchedModel

SERIES = ("loss", "grad_norm", "max_score", "attention_entropy", "update_ratio")


@dataclass
class Record:
    """What a run showed, one entry for every step.

    Args:
        loss: mean cross-entropy in nats.
        layer_grad_norms: length of the gradient of each block's parameters, from first to last.
        layer_scales: root mean square of each block's output.
        max_score: largest visible score of any block, before softmax.
        attention_entropy: nats per query, averaged over blocks, heads and queries.
        update_ratio: length of a step over length of the weights; the median over the blocks' matrices.
        even_entropy: what `attention_entropy` would be if every query looked evenly at all it may see.
        vocab_size: of the model, for the loss that a fresh model should have.
    """

    even_entropy: float = math.nan
    vocab_size: int = 0
    loss: list[float] = field(default_factory=list)
    layer_grad_norms: list[list[float]] = field(default_factory=list)
    layer_scales: list[list[float]] = field(default_factory=list)
    max_score: list[float] = field(default_factory=list)
    attention_entropy: list[float] = field(default_factory=list)
    update_ratio: list[float] = field(default_factory=list)

    @property
    def grad_norm(self) -> list[float]:
        """Give the gradient's length in the first block, where a gradient that fades is at its smallest."""
        return [norms[0] for norms in self.layer_grad_norms]

    def series(self) -> dict[str, Float[Tensor, "step"]]:
        """Give the five series that `diagnose` reads."""
        return {name: torch.tensor(getattr(self, name), dtype=torch.float64) for name in SERIES}


class Recorder:
    """Read a model's instruments, once between the backward pass and the step of the optimizer, and once after it."""

    def __init__(self, model: WatchedModel) -> None:
        self.model = model
        self.record = Record(vocab_size=model.head.out_features)
        self.before: list[Tensor] = []
        self.scales: list[float] = [math.nan] * len(model.blocks)
        for index, block in enumerate(model.blocks):
            block.register_forward_hook(self._scale_reader(index))

    def read_gradients(self, loss: float) -> None:
        """Read all but the update: call it after the backward pass."""
        blocks = self._blocks()
        self.record.loss.append(loss)
        self.record.layer_grad_norms.append([gradient_norm(block) for block in blocks])
        self.record.layer_scales.append(list(self.scales))
        self.record.max_score.append(max(block.attention.largest_score for block in blocks))
        maps = [block.attention.weights for block in blocks if block.attention.weights is not None]
        self.record.attention_entropy.append(statistics.fmean(mean_entropy(weights) for weights in maps))
        self.record.even_entropy = even_entropy(maps[0].shape[-1], self.model.first_hidden)
        self.before = [matrix.detach().clone() for matrix in self._matrices()]

    def read_update(self) -> None:
        """Read how far the weights moved: call it after the optimizer's step."""
        pairs = zip(self._matrices(), self.before, strict=True)
        ratios = [((after.detach() - before).norm() / before.norm()).item() for after, before in pairs]
        self.record.update_ratio.append(statistics.median(ratios))

    def _blocks(self) -> list[WatchedBlock]:
        return [block for block in self.model.blocks if isinstance(block, WatchedBlock)]

    def _matrices(self) -> list[Tensor]:
        return [parameter for parameter in self.model.blocks.parameters() if parameter.ndim > 1]

    def _scale_reader(self, index: int):
        def read(_module: torch.nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
            self.scales[index] = output.detach().square().mean().sqrt().item()

        return read


def gradient_norm(module: torch.nn.Module) -> float:
    """Give the length of the gradient of all parameters of a module."""
    squares = [parameter.grad.square().sum().item() for parameter in module.parameters() if parameter.grad is not None]
    return math.sqrt(sum(squares)) if all(map(math.isfinite, squares)) else math.nan


def mean_entropy(weights: Float[Tensor, "batch heads query key"]) -> float:
    """Average -Σ w ln w over all queries, with 0 ln 0 = 0."""
    return torch.special.entr(weights).sum(dim=-1).mean().item()


def even_entropy(length: int, first_hidden: int) -> float:
    """Average the entropy ln(visible keys) of even attention over the queries of a causal text."""
    visible = [min(length, query + first_hidden) for query in range(length)]
    return statistics.fmean(math.log(count) for count in visible)
