"""The classifier with its steps as methods, so that a belief or another form can replace one of them."""

import torch

from course_lib.models.classifier import TransformerClassifier
from course_lib.padded_batches import masked_mean
from course_lib.positions import sinusoidal_encoding


class Parts(TransformerClassifier):
    """The classifier, step by step."""

    def places(self, length, width):
        return torch.from_numpy(sinusoidal_encoding(length, width)).float()

    def hidden(self, mask):
        return mask[:, None, None, :]

    def read(self, tokens, mask):
        x = self.embedding(tokens)
        x = x + self.places(*x.shape[1:])
        for block in self.blocks:
            x = block(x, self.hidden(mask))
        return self.norm(x)

    def pool(self, x, mask):
        return masked_mean(x, mask)

    def forward(self, tokens, mask):
        return self.head(self.pool(self.read(tokens, mask), mask))
