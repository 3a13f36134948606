"""Two small tasks that ask for positions: one for an exact distance, one for an order alone.

Every place of a text has a label from the text before it, so that one model can be tried at any length.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor, nn

STEPS_BACK = 4
TOKENS = 16
MARKS = 4  # marked tokens in a text, however long it is
VOCABULARY = 2 * TOKENS  # every token, plain and marked
IGNORED = -100  # the label that PyTorch's cross-entropy leaves out

Batch = tuple[Int[Tensor, "batch length"], Int[Tensor, "batch length"]]


def lookback_batch(batch: int, length: int, generator: torch.Generator | None = None) -> Batch:
    """Draw random texts, and for every place the token 4 steps before it; the first places have no label.

    The same distance at every place: where it lies is all that there is to learn.

    Raises:
        ValueError: the text is too short to have any label.
    """
    if length <= STEPS_BACK:
        raise ValueError(f"`length` must exceed the {STEPS_BACK} steps back, got {length}.")
    tokens = torch.randint(TOKENS, (batch, length), generator=generator)
    labels = tokens.roll(STEPS_BACK, dims=-1)
    labels[:, :STEPS_BACK] = IGNORED
    return tokens, labels


def latest_mark_batch(batch: int, length: int, generator: torch.Generator | None = None) -> Batch:
    """Draw random texts in which 4 tokens are marked, and for every place the latest marked token up to it.

    A mark may be near or far, so no distance matters by itself; which of two marks is nearer does. Token t has
    the number t when plain and t + 16 when marked; the label is t. Places before the first mark have no label.

    Raises:
        ValueError: the text is too short for its marks.
    """
    if length < MARKS:
        raise ValueError(f"`length` must be at least {MARKS}, the number of marks; got {length}.")
    plain = torch.randint(TOKENS, (batch, length), generator=generator)
    places = torch.rand(batch, length, generator=generator).argsort(dim=-1)[:, :MARKS]
    marked = torch.zeros(batch, length, dtype=torch.bool).scatter(1, places, True)
    latest = torch.where(marked, torch.arange(length), -1).cummax(dim=-1).values
    labels = plain.gather(1, latest.clamp(min=0)).masked_fill(latest < 0, IGNORED)
    return plain + TOKENS * marked, labels


@torch.no_grad()
def accuracy_by_place(
    model: nn.Module,
    task: Callable[..., Batch],
    length: int,
    positions: Real[Tensor, "sequence"] | None = None,
    texts: int = 200,
    seed: int = 1,
) -> Float[Tensor, "length"]:
    """Return for every place the share of new texts in which the model is right; NaN where no text has a label."""
    tokens, labels = task(texts, length, torch.Generator().manual_seed(seed))
    counted = labels != IGNORED
    right = (model(tokens, positions).argmax(dim=-1) == labels) & counted
    return right.sum(dim=0) / counted.sum(dim=0)


def accuracy(
    model: nn.Module, task: Callable[..., Batch], length: int, positions: Real[Tensor, "sequence"] | None = None
) -> float:
    """Return the mean over the places that have a label."""
    return accuracy_by_place(model, task, length, positions).nanmean().item()


def best_without_order(length: int, texts: int = 400) -> float:
    """Return how often the best guess is right in the look-back task for whoever knows only which tokens came.

    At each place the others up to it are known, but not their order, so the most frequent is the best guess.
    """
    tokens, _ = lookback_batch(texts, length, torch.Generator().manual_seed(1))
    counts = torch.nn.functional.one_hot(tokens, TOKENS).cumsum(dim=1)
    others = counts - torch.nn.functional.one_hot(tokens, TOKENS)
    shares = others.max(dim=-1).values[:, STEPS_BACK:] / others.sum(dim=-1)[:, STEPS_BACK:]
    return shares.double().mean().item()
