"""The wrong beliefs about `CrossAttention`: each a layer with one step gone wrong."""

import math

import torch

from autograder.exercises.cross_attention.cross_attention import exercise
from autograder.exercises.cross_attention.parts import Parts
from course_lib.multi_head import merge_heads
from course_lib.tensor_attention import require_mask, tensor_attention


@exercise.misconception("""
    I replaced the memory by other numbers and your cross-attention did not notice: keys and values come from `x`.
    The decoder asks; what is looked up must come from the other side. What shape should the map have?
""")
class AllFromDecoder(Parts):
    def sources(self, x, memory):
        return x, x, x

    def hidden(self, mask, x, memory):
        return None if mask is None or mask.shape != x.shape[:2] else super().hidden(mask, x, x)


@exercise.misconception("""
    The two sides are exchanged: your queries come from the memory, so your output is as long as the source. A
    decoder needs an answer for each token that **it** writes. Who asks?
""")
class QueryFromMemory(Parts):
    def sources(self, x, memory):
        return memory, x, x

    def hidden(self, mask, x, memory):
        return None


@exercise.misconception("""
    Keys from the memory, values from `x`: a query finds a place in the source and fetches what stands at that place
    in the target. With sides of different lengths there may be no such place. What belongs to a key?
""")
class ValuesFromDecoder(Parts):
    def sources(self, x, memory):
        return x, memory, x


@exercise.misconception("""
    Values from the memory, keys from `x`: your scores compare the target with itself, and the shares are then used
    on other tokens. A key is the label of a value, so both come from one place.
""")
class KeysFromDecoder(Parts):
    def sources(self, x, memory):
        return x, x, memory


@exercise.misconception("""
    Each column of your weights sums to 1: the target's tokens compete for a source token. A row belongs to one query
    and shares out its attention over the memory. Which axis does the memory lie on?
""")
class SoftmaxOverQueries(Parts):
    def attend(self, query, key, value, mask):
        scores = query @ key.mT / math.sqrt(self.d_head)
        weights = (scores if mask is None else scores.masked_fill(mask, -math.inf)).softmax(-2).nan_to_num(0.0)
        return weights @ value, weights


@exercise.misconception("""
    There is a causal mask over your memory: the first token sees only the first source token. The future of the
    **target** is secret, because it is not written yet; the source is there from the start, and every token may read
    all of it.
""")
class CausalOverMemory(Parts):
    def hidden(self, mask, x, memory):
        future = torch.ones(x.shape[1], memory.shape[1], dtype=torch.bool).triu(1)
        padding = super().hidden(mask, x, memory)
        return future if padding is None else future | padding


@exercise.misconception("""
    `memory_mask` has no influence: padding still gets weight, and what happens to stand there reaches the output.
    Hide its scores before the softmax.
""")
class MaskIgnored(Parts):
    def hidden(self, mask, x, memory):
        return None


@exercise.misconception("""
    Your mask works the wrong way round: all weight lies on the padding. In this course, as in
    `nn.MultiheadAttention`, True means hidden.
""")
class MaskInverted(Parts):
    def hidden(self, mask, x, memory):
        found = super().hidden(mask, x, memory)
        return None if found is None else ~found


@exercise.misconception("""
    The mask lies on the axis of the queries: it switches off tokens of the target. `memory_mask` counts tokens of
    the memory, and those are the keys. In (batch, heads, query, key), which axis is that?
""")
class MaskOnQueryAxis(Parts):
    def hidden(self, mask, x, memory):
        return None if mask is None else require_mask(mask, memory.shape[:2])[:, None, :, None]


@exercise.misconception("""
    The padding's states are put to zero, but a state of zero still has a score, and exp(score) is not nothing: the
    padding keeps a share (and the bias of `w_v` comes along). Hide the score, not the state.
""")
class MemoryZeroed(Parts):
    def forward(self, x, memory, memory_mask=None):
        if memory_mask is not None:
            memory = memory.masked_fill(require_mask(memory_mask, memory.shape[:2])[..., None], 0.0)
        return super().forward(x, memory)


@exercise.misconception("""
    The padding's weights are 0, but the others no longer sum to 1: the softmax had already paid for the padding when
    you removed it. What must a score be, before the softmax, so that its share is 0?
""")
class MaskAfterSoftmax(Parts):
    def attend(self, query, key, value, mask):
        _, weights = tensor_attention(query, key, value)
        weights = weights if mask is None else weights.masked_fill(mask, 0.0)
        return weights @ value, weights


@exercise.misconception("""
    A memory that is all padding makes your output NaN: every score is -inf, and the softmax of that has no value.
    Decide what such a row gives (here: weights 0) and handle it.
""")
class NanWhenNothingIsSeen(Parts):
    def attend(self, query, key, value, mask):
        scores = query @ key.mT / math.sqrt(self.d_head)
        weights = (scores if mask is None else scores.masked_fill(mask, -math.inf)).softmax(-1)
        return weights @ value, weights


@exercise.misconception("""
    A memory that is all padding is looked at evenly: a large negative number stands for -inf, and a row full of it
    is as even as a row full of zeros. In this course such a row has weights 0.
""")
class EvenWhenNothingIsSeen(Parts):
    def attend(self, query, key, value, mask):
        scores = query @ key.mT / math.sqrt(self.d_head)
        weights = (scores if mask is None else scores.masked_fill(mask, -1e9)).softmax(-1)
        return weights @ value, weights


@exercise.misconception("""
    A mask of zeros and ones is taken for what it might mean. In some libraries 1 hides, in others it shows: refuse
    whatever is not boolean with a `TypeError`.
""")
class NumbersTakenForAMask(Parts):
    def hidden(self, mask, x, memory):
        return None if mask is None else mask.bool()[:, None, None, :]


@exercise.misconception("""
    Your weights are flatter than they should be, by just the factor that comes from dividing by √d_model. A score
    sums over the d_head features of one head.
""")
class ScaledByModelWidth(Parts):
    def attend(self, query, key, value, mask):
        return tensor_attention(query / math.sqrt(self.num_heads), key, value, mask)


@exercise.misconception("""
    Your scores are never divided by √d_head, so the shares are too sharp. It is chapter 1's attention, whatever the
    two sides are.
""")
class NoScale(Parts):
    def attend(self, query, key, value, mask):
        return tensor_attention(query * math.sqrt(self.d_head), key, value, mask)


@exercise.misconception("""
    Your output does not change when `w_o` does: the merged heads are returned as they are. Which layer lets the
    heads mix?
""")
class NoOutputProjection(Parts):
    def forward(self, x, memory, memory_mask=None):
        heads = [self.split(w(side)) for w, side in ((self.w_q, x), (self.w_k, memory), (self.w_v, memory))]
        output, weights = self.attend(heads[0], heads[1], heads[2], self.hidden(memory_mask, x, memory))
        return merge_heads(output), weights


@exercise.misconception("""
    Shapes are right and one head works, but your split cuts the memory into heads without moving an axis, so each of
    your heads mixes tokens. Try chapter 2's `split_heads` on numbered features.
""")
class SplitByView(Parts):
    def split(self, x):
        return x.reshape(x.shape[0], self.num_heads, x.shape[1], self.d_head)


@exercise.misconception("""
    `w_q` and `w_k` have changed places. Nothing would show in training, where both start at random, but loaded
    weights mean what their names say.
""")
class ProjectionsSwapped(Parts):
    def forward(self, x, memory, memory_mask=None):
        heads = [self.split(w(side)) for w, side in ((self.w_k, x), (self.w_q, memory), (self.w_v, memory))]
        output, weights = self.attend(heads[0], heads[1], heads[2], self.hidden(memory_mask, x, memory))
        return self.w_o(merge_heads(output)), weights


@exercise.misconception("""
    Your second call looked at the memory of the first one. Keeping the projected memory saves much, but the layer
    cannot know when a new source begins: the caller keeps it. That is what `cache_memory` and `attend` are for.
""")
class RemembersTheFirstMemory(Parts):
    kept = None

    def sources(self, x, memory):
        self.kept = memory if self.kept is None else self.kept
        return x, self.kept, self.kept


@exercise.misconception("""
    You return the mean of the heads' maps. The framework's layer does so too, unless told otherwise, but a mean hides
    what the heads do differently. Return (batch, heads, target, source).
""")
class AveragedWeights(Parts):
    def forward(self, x, memory, memory_mask=None):
        output, weights = super().forward(x, memory, memory_mask)
        return output, weights.mean(1)


@exercise.misconception("""
    The output is right, but it comes alone. Return the pair (output, weights): this chapter reads the maps.
""")
class OutputAlone(Parts):
    def forward(self, x, memory, memory_mask=None):
        return super().forward(x, memory, memory_mask)[0]


@exercise.misconception("""
    Your layer insists that both sides have the same length. A translation seldom is as long as its source; only the
    batch and the width must agree.
""")
class EqualLengthsDemanded(Parts):
    def forward(self, x, memory, memory_mask=None):
        if x.shape != memory.shape:
            raise ValueError(f"x and memory must have the same shape, got {tuple(x.shape)} and {tuple(memory.shape)}")
        return super().forward(x, memory, memory_mask)


@exercise.misconception("""
    A width that the heads do not divide is accepted, and features get lost in the split. Raise a `ValueError` when
    the layer is built.
""")
class WidthNotChecked(torch.nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.inner = Parts(d_model - d_model % num_heads, num_heads)
