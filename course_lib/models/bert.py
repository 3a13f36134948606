"""BERT: a stack of blocks in which every token sees all others, with a head per objective of its pretraining."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.block import TransformerBlock
from course_lib.models.gpt import WIDENING, initial_std, require_length, start_small

PAIR_CLASSES = 2  # the second sentence follows the first, or it does not
NORM_EPS = 1e-12  # of the code published with Devlin et al. 2018


class BERT(nn.Module):
    """Read a sequence in both directions; name masked tokens, and say whether two sentences belong together.

    x = norm(token + position + segment embeddings), then post-norm blocks with GELU.
    Token logits: norm(gelu(x w + b)) · token embeddingᵀ + bias. Pair logits: head(tanh(first token w + b)).

    Source: Devlin et al. 2018, §3.1 and appendix A, arXiv 1810.04805; the form of the heads is that of the code
    published with it. The paper drops entries out while training; here nothing is dropped. Its label 0 means that the
    second sentence follows; here, as in `next_sentence_pairs`, 1 does. Matrices start as in `initial_std`.
    """

    def __init__(
        self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, max_length: int, segments: int = 2
    ) -> None:
        """Create the embeddings, the blocks and both heads.

        Raises:
            ValueError: `num_heads` does not divide `d_model`.
        """
        super().__init__()
        self.max_length = max_length
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_length, d_model)
        self.segment_embedding = nn.Embedding(segments, d_model)
        self.embedding_norm = nn.LayerNorm(d_model, eps=NORM_EPS)
        blocks = [
            TransformerBlock(d_model, num_heads, WIDENING * d_model, activation="gelu") for _ in range(num_layers)
        ]
        self.blocks = nn.ModuleList(blocks)
        for block in blocks:
            block.norm_1.eps = block.norm_2.eps = NORM_EPS
        self.pooler = nn.Linear(d_model, d_model)
        self.token_head = nn.Sequential(nn.Linear(d_model, d_model), nn.GELU(), nn.LayerNorm(d_model, eps=NORM_EPS))
        self.token_bias = nn.Parameter(torch.zeros(vocab_size))
        self.pair_head = nn.Linear(d_model, PAIR_CLASSES)
        start_small(self, initial_std(d_model))

    def encode(
        self,
        tokens: Int[Tensor, "batch token"],
        segments: Int[Tensor, "batch token"] | None = None,
        padding: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch token d_model"]:
        """Read every token among all the others.

        Args:
            tokens: their ids.
            segments: 0 for the first sentence, 1 for the second; all 0 if not given.
            padding: True hides a token from all.

        Raises:
            ValueError: there are more tokens than learned positions.
        """
        require_length(tokens.shape[1], self.max_length)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        segments = torch.zeros_like(tokens) if segments is None else segments
        x = self.token_embedding(tokens) + self.position_embedding(places) + self.segment_embedding(segments)
        x = self.embedding_norm(x)
        hidden = None if padding is None else padding[:, None, None, :]
        for block in self.blocks:
            x = block(x, hidden)
        return x

    def token_logits(self, encoded: Float[Tensor, "batch token d_model"]) -> Float[Tensor, "batch token vocab"]:
        """Say which token stands at each place."""
        return F.linear(self.token_head(encoded), self.token_embedding.weight, self.token_bias)

    def pair_logits(self, encoded: Float[Tensor, "batch token d_model"]) -> Float[Tensor, "batch answer"]:
        """Say from the first token whether the second sentence follows the first: answer 1 is yes."""
        return self.pair_head(torch.tanh(self.pooler(encoded[:, 0])))

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        segments: Int[Tensor, "batch token"] | None = None,
        padding: Bool[Tensor, "batch token"] | None = None,
    ) -> tuple[Float[Tensor, "batch token vocab"], Float[Tensor, "batch answer"]]:
        """Return the logits of both objectives: of the token at each place, and of the pair."""
        encoded = self.encode(tokens, segments, padding)
        return self.token_logits(encoded), self.pair_logits(encoded)
