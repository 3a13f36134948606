"""GPT: a stack of blocks under a causal mask that names the next token at every place."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.block import TransformerBlock
from course_lib.masks import causal_mask

WIDENING = 4  # the feed-forward network's width over the model's: Radford et al. 2018, §4.1
INITIAL_STD, STD_WIDTH = 0.02, 768  # of every matrix, in a model of this width: Radford et al. 2018, §4.1
ADDITIONS_PER_BLOCK = 2  # attention and the feed-forward network each add to the stream


class GPT(nn.Module):
    """Predict every token from those before it.

    logits = norm(blocks(token embedding + position embedding)) · token embeddingᵀ: the matrix that reads tokens in
    also reads them out ("tied head"), and what a place sees ends with itself.

    Source: Radford et al. 2019, §2.3, "Language Models are Unsupervised Multitask Learners" (pre-norm, a last norm,
    the scaled start of the matrices that write into the stream); Press and Wolf 2017, arXiv 1608.05859 (the tied
    head). The paper drops entries out while training; here nothing is dropped. Its matrices start with a standard
    deviation of 0.02 at every width; here, as in `initial_std`, that is so at a width of 768.
    """

    def __init__(self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, max_length: int) -> None:
        """Create the embeddings, the blocks and the last norm; all matrices start near 0, so that ln V is lost.

        Raises:
            ValueError: `num_heads` does not divide `d_model`.
        """
        super().__init__()
        self.max_length = max_length
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_length, d_model)
        blocks = [
            TransformerBlock(d_model, num_heads, WIDENING * d_model, norm_first=True, activation="gelu")
            for _ in range(num_layers)
        ]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(d_model)
        std = initial_std(d_model)
        start_small(self, std)
        for block in blocks:
            for writer in (block.attention.w_o, block.ffn.linear_2):
                nn.init.normal_(writer.weight, std=std / math.sqrt(ADDITIONS_PER_BLOCK * num_layers))

    def forward(self, tokens: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token vocab"]:
        """Give the logits of the token after each place.

        Raises:
            ValueError: there are more tokens than learned positions.
        """
        length = tokens.shape[1]
        require_length(length, self.max_length)
        places = torch.arange(length, device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(places)
        hidden = causal_mask(length).to(tokens.device)
        for block in self.blocks:
            x = block(x, hidden)
        return F.linear(self.norm(x), self.token_embedding.weight)


def initial_std(d_model: int) -> float:
    """Give the standard deviation of a fresh matrix: 0.02 √(768 / d_model).

    A product sums d_model terms, so it keeps the size that it has in GPT-2 and BERT, which are 768 wide. With 0.02 a
    narrow model starts in the same place, and takes long to leave it.
    """
    return INITIAL_STD * math.sqrt(STD_WIDTH / d_model)


def start_small(model: nn.Module, std: float) -> None:
    """Draw every linear layer's and embedding's matrix from N(0, std²) and set biases to 0; norms stay as they are."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def require_length(length: int, max_length: int) -> None:
    """Refuse a sequence for whose last places there is no learned position.

    Raises:
        ValueError: the sequence is longer than `max_length`.
    """
    if length > max_length:
        raise ValueError(
            f"`tokens` has {length} places, and this model has learned positions for {max_length}; shorten the "
            "sequence or build the model with a larger `max_length`."
        )
