"""One layer, one head, nothing else: the smallest model that shows what attention can learn."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data import DIGITS


class Reverser(nn.Module):
    """Predict each digit of a reversed string from one attention over the string.

    logits = softmax(q kᵀ / √d_model) v w_o, with q, k, v from digit embeddings plus learned positions. There
    is no residual path: a digit can only come from where the attention looks.

    Source: Vaswani et al. 2017, §3.2, arXiv 1706.03762. The paper adds sinusoids; here positions are learned.
    """

    def __init__(self, length: int, d_model: int = 32, positions: bool = True) -> None:
        super().__init__()
        self.digits = nn.Embedding(DIGITS, d_model)
        self.positions = nn.Embedding(length, d_model) if positions else None
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, DIGITS)

    def forward(
        self, tokens: Int[Tensor, "batch sequence"]
    ) -> tuple[Float[Tensor, "batch sequence digits"], Float[Tensor, "batch sequence sequence"]]:
        """Return the logits of every place and the attention weights.

        Raises:
            ValueError: `tokens` is longer than the model's table of positions.
        """
        x = self.digits(tokens)
        if self.positions is not None:
            longest = self.positions.num_embeddings
            if tokens.shape[-1] > longest:
                raise ValueError(f"`tokens` has {tokens.shape[-1]} places; the model knows only {longest}.")
            x = x + self.positions.weight[: tokens.shape[-1]]
        query, key, value = self.w_q(x), self.w_k(x), self.w_v(x)
        weights = torch.softmax(query @ key.mT / math.sqrt(x.shape[-1]), dim=-1)
        return self.w_o(weights @ value), weights
