"""A language model on the framework's encoder, under whatever mask it is given: for seeing what a mask lets through."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

WIDENING = 4  # the feed-forward network's width over the model's


class EncoderLanguageModel(nn.Module):
    """Name the next token at every place, with a mask that may or may not hide it.

    logits = head(encoder(embedding(tokens) + positions, mask)), with the framework's post-norm encoder and
    without dropout.
    """

    def __init__(
        self,
        vocab_size: int,
        length: int,
        mask: Bool[Tensor, "token token"] | None,
        d_model: int = 32,
        num_heads: int = 2,
        num_layers: int = 2,
    ) -> None:
        """Create the model; `mask` is the encoder's, True hides, and None hides nothing."""
        super().__init__()
        layer = nn.TransformerEncoderLayer(d_model, num_heads, WIDENING * d_model, dropout=0.0, batch_first=True)
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Parameter(0.5 * torch.randn(length, d_model))
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        self.head = nn.Linear(d_model, vocab_size)
        self.mask = mask

    def read(self, x: Float[Tensor, "batch token d_model"]) -> Float[Tensor, "batch token vocab"]:
        """Give logits for tokens that are embedded already, which have gradients."""
        return self.head(self.encoder(x + self.positions, mask=self.mask))

    def forward(self, tokens: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token vocab"]:
        """Give the logits of every place."""
        return self.read(self.embedding(tokens))
