"""Recipes of models that shaped the field, and what their optimizers leave alone."""

from dataclasses import dataclass
from typing import Any

from torch import nn

LEAST_AXES_OF_A_MATRIX = 2


@dataclass(frozen=True)
class Recipe:
    """How a model was trained, as its paper tells.

    Args:
        layers: blocks (of the encoder, where there are two stacks).
        peak_rate: highest learning rate.
        warmup: steps of the climb.
        steps: of the whole training.
        tokens_per_step: sequences times their length; the papers give it roughly.
        betas: of Adam.
        weight_decay: None where the paper names none, as are the dropout and the clip.
        clip: largest norm of a gradient.
        then: what the rate does after the climb.
        source: where the paper says so.
    """

    layers: int
    d_model: int
    d_ff: int
    heads: int
    dropout: float | None
    peak_rate: float
    warmup: int
    steps: int
    tokens_per_step: int
    betas: tuple[float, float]
    weight_decay: float | None
    clip: float | None
    then: str
    source: str


RECIPES = {
    "original base": Recipe(
        *(6, 512, 2048, 8, 0.1),
        *(7.0e-4, 4_000, 100_000, 25_000),
        *((0.9, 0.98), None, None, "step^-½"),
        "Vaswani et al. 2017, §5 and table 3, arXiv 1706.03762; peak 512^-½ · 4000^-½",
    ),
    "BERT base": Recipe(
        *(12, 768, 3072, 12, 0.1),
        *(1e-4, 10_000, 1_000_000, 256 * 512),
        *((0.9, 0.999), 0.01, None, "line to 0"),
        "Devlin et al. 2018, §3 and appendix A.2, arXiv 1810.04805; the first 90 % of the steps read 128 tokens each",
    ),
    "BERT large": Recipe(
        *(24, 1024, 4096, 16, 0.1),
        *(1e-4, 10_000, 1_000_000, 256 * 512),
        *((0.9, 0.999), 0.01, None, "line to 0"),
        "Devlin et al. 2018, §3 and appendix A.2, arXiv 1810.04805",
    ),
    "GPT-3": Recipe(
        *(96, 12_288, 49_152, 96, None),
        *(0.6e-4, 117, 94_000, 3_200_000),
        *((0.9, 0.95), 0.1, 1.0, "cosine to a tenth"),
        "Brown et al. 2020, table 2.1 and appendix B, arXiv 2005.14165; it counts in tokens (warm-up 375 million of "
        "300 billion), steps are tokens over 3.2 million",
    ),
}


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Split a model's parameters for an optimizer: matrices decay, biases and the gains of norms do not.

    Source: the published code of Devlin et al. 2018 excludes norms and biases. Embeddings are matrices, and decay.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in trained if parameter.ndim >= LEAST_AXES_OF_A_MATRIX]
    others = [parameter for parameter in trained if parameter.ndim < LEAST_AXES_OF_A_MATRIX]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
