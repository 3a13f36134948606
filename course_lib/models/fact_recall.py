"""A table of random facts and one block to learn it: what a feed-forward network is for.

A fact names an object for a subject and a relation, at random, so nothing can be derived and all must be stored.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.block import TransformerBlock


def fact_table(
    subjects: int, relations: int, objects: int, generator: torch.Generator | None = None
) -> tuple[Int[Tensor, "fact place"], Int[Tensor, " fact"]]:
    """Draw an object for every pair of a subject and a relation.

    A row of the first result is a pair of tokens: a subject, from 0, and a relation, counted on from the subjects.

    Raises:
        ValueError: a count is below 1.
    """
    for name, count in (("subjects", subjects), ("relations", relations), ("objects", objects)):
        if count < 1:
            raise ValueError(f"`{name}` must be at least 1, got {count}.")
    pairs = torch.cartesian_prod(torch.arange(subjects), torch.arange(subjects, subjects + relations))
    return pairs, torch.randint(objects, (len(pairs),), generator=generator)


class FactRecall(nn.Module):
    """Name the object: embed the two tokens, run one post-norm block, read the last token with a linear layer."""

    def __init__(
        self,
        subjects: int,
        relations: int,
        objects: int,
        d_model: int = 16,
        num_heads: int = 2,
        d_ff: int = 64,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(subjects + relations, d_model)
        self.block = TransformerBlock(d_model, num_heads, d_ff, activation=activation)
        self.head = nn.Linear(d_model, objects)

    def mixed(self, tokens: Int[Tensor, "fact place"]) -> Float[Tensor, "fact d_model"]:
        """Return what the feed-forward network reads at the last token: subject and relation, mixed by attention."""
        x = self.embedding(tokens)
        attended, _ = self.block.attention(x, x, x)
        return self.block.norm_1(x + attended)[:, -1]

    def forward(self, tokens: Int[Tensor, "fact place"]) -> Float[Tensor, "fact objects"]:
        """Return a score for every object."""
        return self.head(self.block(self.embedding(tokens))[:, -1])
