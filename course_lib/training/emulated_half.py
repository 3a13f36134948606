"""Train a small character model as a half-precision device would, on a processor that has no fast half precision.

Weights, activations between layers, and gradients are rounded to the half-precision dtype; what happens inside a layer
runs in float32, as in the accumulators of Tensor Cores. So it is known exactly where numbers are lost.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.block import TransformerBlock
from course_lib.documentation_text import documentation_text, windows
from course_lib.masks import causal_mask
from course_lib.training.loop import summary
from course_lib.training.mixed_precision import loss_scale_step

BATCH, LENGTH = 16, 32  # sequences, characters
WIDTH, HEADS, LAYERS = 48, 4, 2
LAST = 20  # steps that the final loss is averaged over
FIRST_SCALE = 2.0**36  # of a dynamic scale: far too high, so that it is seen to come down
GROWTH_INTERVAL = 100  # short beside the usual 2000, as the runs are


class _Round(torch.autograd.Function):
    """Round on the way forward, and the gradient on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dtype: torch.dtype) -> Tensor:
        ctx.dtype = dtype
        return x.to(dtype).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0].to(ctx.dtype).to(grads[0].dtype), None


def rounded(x: Float[Tensor, "..."], dtype: torch.dtype | None) -> Float[Tensor, "..."]:
    """Round a tensor, and its gradient, to the numbers of a dtype, and keep its own dtype; None rounds nothing."""
    return x if dtype is None else _Round.apply(x, dtype)  # pyright: ignore[reportReturnType]


class RoundedReader(nn.Module):
    """Predict the next character by two pre-norm blocks, with everything between layers rounded."""

    def __init__(self, vocab_size: int, dtype: torch.dtype | None) -> None:
        super().__init__()
        self.dtype = dtype
        self.characters, self.places = nn.Embedding(vocab_size, WIDTH), nn.Embedding(LENGTH, WIDTH)
        blocks = (TransformerBlock(WIDTH, HEADS, 2 * WIDTH, norm_first=True) for _ in range(LAYERS))
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(WIDTH, vocab_size)

    def forward(self, tokens: Int[Tensor, "batch sequence"]) -> Float[Tensor, "batch sequence vocab"]:
        """Return the logits of every place."""
        length = tokens.shape[1]
        x = rounded(self.characters(tokens) + self.places.weight[:length], self.dtype)
        for block in self.blocks:
            x = rounded(block(x, causal_mask(length)), self.dtype)
        return rounded(self.head(x), self.dtype)


@dataclass(frozen=True)
class Recipe:
    """How a run treats its numbers.

    Args:
        dtype: Of weights, activations and gradients; None for float32.
        scale: On the loss; "dynamic" finds its own.
        master: Whether a float32 copy of the weights is kept.
        pieces: Into how many pieces a batch is cut; each piece's loss, and so its gradient, is divided by this.
        rate: Learning rate of Adam.
    """

    dtype: torch.dtype | None = None
    scale: float | str = 1.0
    master: bool = True
    pieces: int = 1
    rate: float = 1e-3


@dataclass(frozen=True)
class Outcome:
    """What a run gave: its losses, the share of gradient entries that were 0, scale and skips over the steps."""

    losses: list[float]
    zeros: float
    scales: list[float]
    skipped: int

    @property
    def final(self) -> float:
        """Return the mean loss of the last steps."""
        last = self.losses[-LAST:]
        return sum(last) / len(last)


def train_rounded(recipe: Recipe, steps: int, seed: int = 0) -> Outcome:
    """Train a reader by a recipe; print one line.

    Each step sees one piece of its batch, which stands in for all of them: its gradient is multiplied by `pieces` again
    when it has passed through half precision.

    Raises:
        ValueError: `steps` is below 1.
    """
    if steps < 1:
        raise ValueError(f"`steps` must be at least 1, got {steps}.")
    text, generator = documentation_text(), torch.Generator().manual_seed(seed + 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = RoundedReader(text.vocab_size, recipe.dtype)
    weights = list(model.parameters())
    kept = [weight.detach().clone() for weight in weights]
    optimizer = torch.optim.Adam(kept, lr=recipe.rate)
    dynamic = recipe.scale == "dynamic"
    scale, good = FIRST_SCALE if dynamic else float(recipe.scale), 0
    losses, scales, zeros, skipped = [], [], 0.0, 0
    for _ in range(steps):
        for weight, copy in zip(weights, kept, strict=True):
            weight.data.copy_(rounded(copy, recipe.dtype))
            weight.grad = None
        piece = windows(text.train, BATCH, LENGTH + 1, generator)
        loss = F.cross_entropy(model(piece[:, :-1]).flatten(0, 1), piece[:, 1:].flatten())
        (loss * (scale / recipe.pieces)).backward()
        losses.append(loss.item())
        scales.append(scale)
        grads = [rounded(weight.grad, recipe.dtype) for weight in weights if weight.grad is not None]
        unscaled, new_scale, good = loss_scale_step(grads, scale, good, GROWTH_INTERVAL)
        if dynamic:
            scale = new_scale
        if unscaled is None:
            skipped += 1
            continue
        zeros = sum(int((grad == 0).sum()) for grad in grads) / sum(grad.numel() for grad in grads)
        for copy, grad in zip(kept, unscaled, strict=True):
            copy.grad = grad * recipe.pieces
        optimizer.step()
        if not recipe.master:
            for copy in kept:
                copy.copy_(rounded(copy, recipe.dtype))
    print(summary(losses))
    return Outcome(losses, zeros, scales, skipped)


def zeroed_share(grads: list[Tensor], scale: float, dtype: torch.dtype) -> tuple[float, float]:
    """Give the share of the nonzero entries that become 0 in a dtype under a scale, and the share that overflows."""
    entries = torch.cat([grad.flatten() for grad in grads])
    entries = entries[entries != 0].double() * scale
    halves = entries.to(dtype)
    return (halves == 0).double().mean().item(), halves.isinf().double().mean().item()


def reader_gradients(steps: int, seed: int = 0) -> list[Tensor]:
    """Train a reader in float32 for some steps and give the gradients of one more, by parameter."""
    text, generator = documentation_text(), torch.Generator().manual_seed(seed + 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = RoundedReader(text.vocab_size, None)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps + 1):
        piece = windows(text.train, BATCH, LENGTH + 1, generator)
        optimizer.zero_grad()
        F.cross_entropy(model(piece[:, :-1]).flatten(0, 1), piece[:, 1:].flatten()).backward()
        grads = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
        optimizer.step()
    return grads
