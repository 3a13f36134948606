"""A memory test for one attention: learn which value came with which key, then name it when the key is shown again.

A sequence holds pairs; each pair is one token, the sum of the embeddings of its key and its value. All keys of a
sequence differ. The questions are the same keys in another order. One attention answers all of them, and its kind is
the only thing that changes between models.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.efficient.linear import linear_attention
from course_lib.tensor_attention import tensor_attention

KINDS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "softmax": lambda query, key, value: tensor_attention(query, key, value)[0],
    "linear": linear_attention,
}


def recall_batch(
    batch: int, pairs: int, vocab_size: int, generator: torch.Generator | None = None
) -> tuple[Int[Tensor, "batch pairs 3"], Int[Tensor, "batch pairs"]]:
    """Draw pairs of keys and values, and the keys once more in another order with the values that belong to them.

    The last axis of the first result holds keys, values and the keys that are asked.

    Raises:
        ValueError: there are more pairs than keys.
    """
    if not 1 <= pairs <= vocab_size:
        raise ValueError(f"`pairs` must lie in 1 … {vocab_size}, the number of different keys; got {pairs}.")
    keys = torch.rand(batch, vocab_size, generator=generator).argsort(-1)[:, :pairs]
    values = torch.randint(vocab_size, (batch, pairs), generator=generator)
    order = torch.rand(batch, pairs, generator=generator).argsort(-1)
    return torch.stack([keys, values, keys.gather(-1, order)], dim=-1), values.gather(-1, order)


class KeyValueRecall(nn.Module):
    """Answer all questions about a list of pairs with one attention.

    Args:
        kind: one of `KINDS`.
        vocab_size: number of different keys, and of different values.
        d_model: width of embeddings and values.
        d_k: width of queries and keys; for linear attention also the number of its features.
    """

    def __init__(self, kind: str, vocab_size: int, d_model: int, d_k: int) -> None:
        """Create the model.

        Raises:
            ValueError: `kind` is none of `KINDS`.
        """
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"`kind` must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
        self.attend = KINDS[kind]
        self.key_embedding = nn.Embedding(vocab_size, d_model)
        self.value_embedding = nn.Embedding(vocab_size, d_model)
        self.w_q, self.w_k = (nn.Linear(d_model, d_k) for _ in range(2))
        self.w_v = nn.Linear(d_model, d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, batch: Int[Tensor, "batch pairs 3"]) -> Float[Tensor, "batch pairs vocab"]:
        """Return logits over the values, one row per question."""
        keys, values, asked = batch.unbind(-1)
        told = self.key_embedding(keys) + self.value_embedding(values)
        questions = self.key_embedding(asked)
        return self.head(self.attend(self.w_q(questions), self.w_k(told), self.w_v(told)))


def recall_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Average the cross-entropy over all questions."""
    questions, answers = batch
    return F.cross_entropy(model(questions).flatten(0, 1), answers.flatten())


@torch.no_grad()
def recalled(model: nn.Module, questions: Int[Tensor, "batch pairs 3"], answers: Int[Tensor, "batch pairs"]) -> float:
    """Give the share of questions that a model answers correctly."""
    return (model(questions).argmax(-1) == answers).double().mean().item()
