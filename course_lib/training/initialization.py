"""Where a training starts: how large the weights of a deep stack should be, and the loss that a fresh model has."""

import math

ADDITIONS_PER_LAYER = 2  # attention and feed-forward network each add once to the stream


def residual_init_std(num_layers: int, base: float = 0.02) -> float:
    """Give the spread of the last matrix of every sublayer: base / √(2 · layers).

    A stack adds 2 · layers terms to its stream. If they are independent their variances add up, so each term gets
    that part of the variance.

    Raises:
        ValueError: `num_layers` is below 1.

    Source: Radford et al. 2019 (GPT-2), §2.3: residual layers scaled by 1/√N, "where N is the number of residual
    layers". Here N is the number of additions, as in the published code of its successors.
    """
    if num_layers < 1:
        raise ValueError(f"`num_layers` must be at least 1, got {num_layers}.")
    return base / math.sqrt(ADDITIONS_PER_LAYER * num_layers)


def initial_loss(vocab_size: int) -> float:
    """Give the cross-entropy, in nats, of a model that has learned nothing: -ln(1 / vocab_size) = ln vocab_size.

    Raises:
        ValueError: `vocab_size` is below 1.
    """
    if vocab_size < 1:
        raise ValueError(f"`vocab_size` must be at least 1, got {vocab_size}.")
    return math.log(vocab_size)
