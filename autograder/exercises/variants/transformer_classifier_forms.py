"""Other forms of `TransformerClassifier` that every check accepts."""

import torch
from torch import nn

from autograder.exercises.variants.classifier_parts import Parts
from autograder.exercises.variants.transformer_classifier import exercise
from course_lib.models.classifier import TransformerClassifier


@exercise.alternative
class WithPaddingThatAsksNothing(Parts):
    def hidden(self, mask):
        return mask[:, None, None, :] | mask[:, None, :, None]


@exercise.alternative
class OnTheFrameworkStack(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, num_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(128, d_model)
        layer = nn.TransformerEncoderLayer(d_model, num_heads, 2 * d_model, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        self.out = nn.Linear(d_model, num_classes)

    def forward(self, tokens, mask):
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1]))
        shown = ~mask
        empty = mask.all(1, keepdim=True)
        x = self.encoder(x, src_key_padding_mask=mask & ~empty)
        kept = (x * shown.unsqueeze(-1)).sum(1) / shown.sum(1).clamp(min=1).unsqueeze(-1)
        return self.out(kept)


@exercise.alternative
class WithOwnSinusoids(TransformerClassifier):
    def forward(self, tokens, mask):
        width = self.embedding.embedding_dim
        angles = torch.arange(tokens.shape[1])[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
        x = self.embedding(tokens) + torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        for block in self.blocks:
            x = block(x, mask.unsqueeze(1).unsqueeze(2))
        weights = (~mask).float() / (~mask).float().sum(1, keepdim=True).clamp(min=1)
        return self.head(torch.einsum("bn,bnd->bd", weights, self.norm(x)))


@exercise.alternative
class WithSmallLearnedPlaces(Parts):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, num_classes):
        super().__init__(vocab_size, d_model, num_heads, num_layers, num_classes)
        self.learned = nn.Parameter(0.02 * torch.randn(64, d_model))

    def places(self, length, width):
        return self.learned[:length]


@exercise.alternative
class RowByRow(Parts):
    def forward(self, tokens, mask):
        found = []
        for row, hidden in zip(tokens, mask, strict=True):
            shown = ~hidden
            if not shown.any():
                found.append(self.head(torch.zeros(self.embedding.embedding_dim)))
                continue
            x = self.read(row[None], hidden[None])[0]
            found.append(self.head(x[shown].mean(0)))
        return torch.stack(found)
