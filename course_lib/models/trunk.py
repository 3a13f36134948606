"""One stack of blocks for every objective: which tokens may see which is an argument, not a property of the model."""

import math

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.models.llama import EditedBlock, Edits, make_norm, sizes_for

ROTARY = Edits(rotary=True)  # GPT-2's block but for its positions, which are then learned in far fewer steps


class Trunk(nn.Module):
    """Read tokens under a mask and name one at each place: logits = norm(blocks(embedding)) · embeddingᵀ.

    With a causal mask it is trained as a GPT, with no mask as a BERT. Positions are rotary, so that both know order.

    Source: GPT-2's pre-norm block (Radford et al. 2019, §2.3) with rotary positions (Su et al. 2021, §3.4, arXiv
    2104.09864). There all matrices start with the standard deviation 0.02, made for wide models; here the embedding
    starts with 1/√d_model and the rest as the framework has it, with which a narrow model learns several times as
    fast. BERT itself is post-norm with learned positions, as `BERT` is.
    """

    def __init__(self, vocab_size: int, d_model: int, num_heads: int, num_layers: int) -> None:
        """Create the embedding, the blocks and the last norm.

        Raises:
            ValueError: `num_heads` does not divide `d_model`.
        """
        super().__init__()
        sizes = sizes_for(d_model, num_heads, num_heads, ROTARY)
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(EditedBlock(sizes, ROTARY) for _ in range(num_layers))
        self.norm = make_norm(d_model, ROTARY)
        nn.init.normal_(self.embedding.weight, std=1 / math.sqrt(d_model))

    def forward(
        self, tokens: Int[Tensor, "batch token"], mask: Bool[Tensor, "query key"] | None = None
    ) -> Float[Tensor, "batch token vocab"]:
        """Give the logits of every place; True in `mask` hides a key from a query."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return F.linear(self.norm(x), self.embedding.weight)
