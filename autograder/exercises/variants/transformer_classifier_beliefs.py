"""The wrong beliefs about `TransformerClassifier`: each a classifier with one step gone wrong."""

import torch

from autograder.exercises.variants.classifier_parts import Parts
from autograder.exercises.variants.transformer_classifier import exercise


@exercise.misconception("""
    Your classifier does not know order: exchanging two words changes nothing. Attention treats a sequence as a bag, and
    so does a mean (chapter 5). Document A's classifier has this fault, and cannot learn which of two words comes first.
    What is added to the embeddings?
""")
class NoPositions(Parts):
    def places(self, length, width):
        return torch.zeros(length, width)


@exercise.misconception("""
    The padding is hidden from attention, and it still counts in your mean: with more padding the same sentence gets
    other logits. How many tokens should the sum be divided by, and which ones belong into it?
""")
class PaddingInTheMean(Parts):
    def pool(self, x, mask):
        return x.mean(1)


@exercise.misconception("""
    Your sum leaves the padding out, but you divide by the whole length, padding included. Six words then give six
    ninths of their mean in a row of nine places. Count the visible ones.
""")
class DividedByTheWholeLength(Parts):
    def pool(self, x, mask):
        return x.masked_fill(mask[..., None], 0).mean(1)


@exercise.misconception("""
    The padding is left out of your mean, but tokens still attend to it inside the blocks. It must be hidden twice: as a
    key in every attention, and in the mean. (If you do hand a mask to the blocks: in (batch, head, query, key) the
    padding belongs on the **last** axis. What a padded token asks does no harm; what others read from it does.)
""")
class PaddingAttended(Parts):
    def hidden(self, mask):
        return None


@exercise.misconception("""
    Your mask has no influence: padding is read by the blocks and counted in the mean. Where does `forward` use it?
""")
class MaskIgnored(Parts):
    def forward(self, tokens, mask):
        return super().forward(tokens, torch.zeros_like(mask))


@exercise.misconception("""
    Your mask works the wrong way round: the visible tokens have no influence, and the padding decides. True hides.
""")
class MaskInverted(Parts):
    def forward(self, tokens, mask):
        return super().forward(tokens, ~mask)


@exercise.misconception("""
    You read the features of the first place, as BERT reads its special token. Here there is no such token, and where
    the padding stands first it is a padded one that you read. A mean over what is visible is asked for.
""")
class FirstPlaceOnly(Parts):
    def pool(self, x, mask):
        return x[:, 0]


@exercise.misconception("""
    You read the features of the last place, which is padding in most rows. A mean over the visible tokens takes part
    of each.
""")
class LastPlaceOnly(Parts):
    def pool(self, x, mask):
        return x[:, -1]


@exercise.misconception("""
    Your attention runs along the batch, so a sentence is read together with the others and not with itself. Which axis
    do your blocks take for the sequence? (The framework's layers need `batch_first=True` here.)
""")
class AttentionAlongTheBatch(Parts):
    def read(self, tokens, mask):
        x = self.embedding(tokens)
        x = (x + self.places(*x.shape[1:])).transpose(0, 1)
        for block in self.blocks:
            x = block(x)
        return self.norm(x.transpose(0, 1))


@exercise.misconception("""
    You return probabilities. Return what the head gives: cross-entropy has the softmax inside.
""")
class Probabilities(Parts):
    def forward(self, tokens, mask):
        return super().forward(tokens, mask).softmax(-1)


@exercise.misconception("""
    You classify every place. One answer per sequence is asked for: first take the mean over the visible tokens.
""")
class NoPooling(Parts):
    def pool(self, x, mask):
        return x


@exercise.misconception("""
    A sequence without a visible token gives NaN, 0 divided by 0, and one such row spoils the whole batch's loss. Give
    it a mean of zeros: what is the least that the count may be?
""")
class NanForAnEmptySequence(Parts):
    def pool(self, x, mask):
        return x.masked_fill(mask[..., None], 0).sum(1) / (~mask).sum(1, keepdim=True)
