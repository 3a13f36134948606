"""The wrong beliefs about `MultiHeadAttention`: each a layer with one step gone wrong."""

import math

import torch

from autograder.exercises.multi_head_attention.multi_head_attention import exercise
from autograder.exercises.multi_head_attention.parts import Parts
from course_lib.tensor_attention import tensor_attention


@exercise.misconception("""
    Your weights are flatter than they should be, by just the factor that comes from dividing by √d_model.
    After the split a score sums over the d_head features of one head: that is the number whose root keeps
    scores near 1. With a single head the two agree.
""")
class ScaledByModelWidth(Parts):
    def attend(self, query, key, value, mask):
        return tensor_attention(query / math.sqrt(self.num_heads), key, value, mask)


@exercise.misconception("""
    Your output does not change when `w_o` does: the merged heads are returned as they are. Without the output
    projection, what head 0 found can only ever reach the first d_head features. Which layer lets the heads
    mix?
""")
class NoOutputProjection(Parts):
    def forward(self, query, key, value, mask=None):
        query, key, value = (self.split(w(x)) for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value)))
        output, weights = self.attend(query, key, value, self.checked(mask))
        return self.merge(output), weights


@exercise.misconception("""
    Nothing changes when `w_q`, `w_k` or `w_v` do: the heads cut up the raw input. The features of a token
    come in no useful order, and slices of them ask no learned question. Project first, then split.
""")
class SlicedWithoutProjections(Parts):
    def forward(self, query, key, value, mask=None):
        query, key, value = (self.split(x) for x in (query, key, value))
        output, weights = self.attend(query, key, value, self.checked(mask))
        return self.w_o(self.merge(output)), weights


@exercise.misconception("""
    Shapes are right and one head works, but when I reorder the tokens your output is not reordered the same
    way: your split cuts the memory into heads without moving an axis, so each of your heads mixes tokens. Try
    `split_heads` on numbered features.
""")
class SplitByView(Parts):
    def split(self, x):
        return x.reshape(x.shape[0], self.num_heads, x.shape[1], self.d_head)


@exercise.misconception("""
    Shapes are right and one head works, but row 0 of your merged heads holds numbers of several tokens: the
    head axis was not moved back behind the sequence before the reshape. A late token can now change an early
    output, whatever the mask says.
""")
class MergedWithoutTranspose(Parts):
    def merge(self, x):
        return x.reshape(x.shape[0], x.shape[2], -1)


@exercise.misconception("""
    Both your split and your merge re-cut the memory without moving an axis. The two undo each other, so the
    round trip looks right, but in between every head works on pieces of a few tokens. Look at the numbered
    features after the split alone.
""")
class SplitAndMergedByView(SplitByView, MergedWithoutTranspose):
    pass


@exercise.misconception("""
    All your heads show the same map: there is one softmax over scores of the full width. That is a single
    wide head. Stacked projections do save products, but the scores must be taken head by head, or the heads
    cannot disagree.
""")
class OneSoftmaxForAllHeads(Parts):
    def forward(self, query, key, value, mask=None):
        mask = self.checked(mask)
        output, weights = tensor_attention(
            self.w_q(query)[:, None], self.w_k(key)[:, None], self.w_v(value)[:, None], mask
        )
        return self.w_o(output[:, 0]), weights.expand(-1, self.num_heads, -1, -1)


@exercise.misconception("""
    You return the mean of the heads' maps, (batch, query, key). The framework's layer does so too, unless it
    is told otherwise, but a mean hides what the heads do differently. Return one map for each head: (batch,
    heads, query, key).
""")
class AveragedWeights(Parts):
    def forward(self, query, key, value, mask=None):
        output, weights = super().forward(query, key, value, mask)
        return output, weights.mean(1)


@exercise.misconception("""
    The output is right, but it comes alone. Return the pair (output, weights).
""")
class OutputAlone(Parts):
    def forward(self, query, key, value, mask=None):
        return super().forward(query, key, value, mask)[0]


@exercise.misconception("""
    The two results are in the other order: return the output first, then the weights.
""")
class WeightsBeforeOutput(Parts):
    def forward(self, query, key, value, mask=None):
        return super().forward(query, key, value, mask)[::-1]


@exercise.misconception("""
    Self-attention works, but your values are made from `key`, so `value` has no influence. The two often are
    the same tensor; where they are not, keys are what is compared and values are what is fetched.
""")
class ValuesFromKeys(Parts):
    def forward(self, query, key, value, mask=None):
        return super().forward(query, key, key, mask)


@exercise.misconception("""
    Self-attention works, but keys and values are made from `query`, so the queries only ever look at
    themselves. Three arguments come in because they may be three different things.
""")
class EverythingFromQuery(Parts):
    def forward(self, query, key, value, mask=None):
        return super().forward(query, query, query, mask)


@exercise.misconception("""
    `w_q` and `w_k` have changed places: the queries go through `w_k`. Nothing would show in training, where
    both start at random, but loaded weights mean what their names say.
""")
class ProjectionsSwapped(Parts):
    def forward(self, query, key, value, mask=None):
        query, key, value = (self.split(w(x)) for w, x in ((self.w_k, query), (self.w_q, key), (self.w_v, value)))
        output, weights = self.attend(query, key, value, self.checked(mask))
        return self.w_o(self.merge(output)), weights


@exercise.misconception("""
    Your mask works the wrong way round: the weights lie exactly on the hidden keys. In this course, as in
    `nn.MultiheadAttention`, True means hidden. (In `F.scaled_dot_product_attention` True means "may be seen";
    if you looked that one up, this is why.)
""")
class MaskInverted(Parts):
    def attend(self, query, key, value, mask):
        return tensor_attention(query, key, value, None if mask is None else ~mask)


@exercise.misconception("""
    Your mask has no effect: hidden keys still get weight. Does it reach the scores? `masked_fill` returns a
    new tensor and leaves the old one as it was.
""")
class MaskIgnored(Parts):
    def attend(self, query, key, value, mask):
        return tensor_attention(query, key, value)


@exercise.misconception("""
    A query that sees nothing becomes NaN: its scores are -inf everywhere, and the softmax of that has no
    value. Decide what such a row should give (here: weights 0) and handle it.
""")
class NanWhenNothingIsSeen(Parts):
    def attend(self, query, key, value, mask):
        scores = query @ key.mT / math.sqrt(self.d_head)
        scores = scores if mask is None else scores.masked_fill(self._boolean(mask), -math.inf)
        weights = scores.softmax(-1)
        return weights @ value, weights

    def _boolean(self, mask):
        if mask.dtype != torch.bool:
            raise TypeError("a mask must be boolean")
        return mask


@exercise.misconception("""
    A query that sees nothing shares its attention evenly over keys that it must not see: a large negative
    number stands for -inf, and a row full of it is as even as a row full of zeros. In this course such a row
    has weights 0.
""")
class EvenWhenNothingIsSeen(NanWhenNothingIsSeen):
    def attend(self, query, key, value, mask):
        scores = query @ key.mT / math.sqrt(self.d_head)
        scores = scores if mask is None else scores.masked_fill(self._boolean(mask), -1e9)
        weights = scores.softmax(-1)
        return weights @ value, weights


@exercise.misconception("""
    A mask of 3 axes is read as one mask for each head, because broadcasting lines axes up from the right.
    Your caller may well have meant one for each batch row, and with as many rows as heads nobody would
    notice. Raise a `ValueError` and let the caller say which.
""")
class ThreeAxesPerHead(Parts):
    def checked(self, mask):
        return mask


@exercise.misconception("""
    A mask of 3 axes is read as one mask for each batch row. That is often what is meant, but it could as well
    be one for each head, and with as many rows as heads nobody would notice. Raise a `ValueError` and let the
    caller say which.
""")
class ThreeAxesPerBatchRow(Parts):
    def checked(self, mask):
        return mask[:, None] if mask is not None and mask.ndim == 3 else mask


@exercise.misconception("""
    A mask of zeros and ones is taken for what it might mean. In some libraries 1 hides, in others it shows,
    and a mask that is added holds 0 and -inf: refuse whatever is not boolean with a `TypeError`.
""")
class NumbersTakenForAMask(Parts):
    def attend(self, query, key, value, mask):
        return tensor_attention(query, key, value, None if mask is None else mask.bool())


@exercise.misconception("""
    Your projections have biases even when `bias=False`: there is something left in the layer that the loaded
    weights do not name. Hand `bias` on to all four `nn.Linear`.
""")
class BiasArgumentIgnored(Parts):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__(d_model, num_heads)


@exercise.misconception("""
    A width that the heads do not divide is accepted, and features get lost in the split. Raise a `ValueError`
    when the layer is built: the sooner, the nearer to the mistake.
""")
class WidthNotChecked(torch.nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        self.inner = Parts(d_model - d_model % num_heads, num_heads, bias)
