"""The wrong beliefs about `DecoderBlock`, and other forms that every check accepts."""

import torch
from torch import nn

from autograder.exercises.cross_attention.decoder_block import exercise
from course_lib import decoder_block
from course_lib.cross_attention import CrossAttention, attend, cache_memory
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention


class _Parts(decoder_block.DecoderBlock):
    """The block with its sublayers as methods."""

    def look_back(self, x, memory_mask):
        return self.self_attention(x, x, x, causal_mask(x.shape[1]))[0]

    def look_through(self, x, memory, memory_mask):
        return self.cross_attention(x, memory, memory_mask)[0]

    def forward(self, x, memory, memory_mask=None):
        x = self.norm_1(x + self.look_back(x, memory_mask))
        x = self.norm_2(x + self.look_through(x, memory, memory_mask))
        return self.norm_3(x + self.ffn(x))


@exercise.misconception("""
    Your block looks through the memory first and at what is written second. The paper's order is the other one: a
    token first learns where in the target it stands, and then asks the source with that.
""")
class CrossFirst(_Parts):
    def forward(self, x, memory, memory_mask=None):
        x = self.norm_2(x + self.look_through(x, memory, memory_mask))
        x = self.norm_1(x + self.look_back(x, memory_mask))
        return self.norm_3(x + self.ffn(x))


@exercise.misconception("""
    I changed a late token and an early output moved: the self-attention of your block sees the future. A model
    trained with that reads the answer instead of writing it. Which mask does chapter 6 have for this?
""")
class FutureVisible(_Parts):
    def look_back(self, x, memory_mask):
        return self.self_attention(x, x, x)[0]


@exercise.misconception("""
    Your causal mask hides too much: a token does not see itself, and the first one sees nothing. What has been
    written includes the newest token.
""")
class BlindToItself(_Parts):
    def look_back(self, x, memory_mask):
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(0)
        return self.self_attention(x, x, x, hidden)[0]


@exercise.misconception("""
    Your causal mask lies the wrong way round: a token sees itself and the future, and the past is hidden. `tril`
    gives what may be **seen**; in this course True hides.
""")
class CausalInverted(_Parts):
    def look_back(self, x, memory_mask):
        return self.self_attention(x, x, x, causal_mask(x.shape[1]).T)[0]


@exercise.misconception("""
    The memory has no influence on your block: there are two sublayers where there should be three. Without
    cross-attention a decoder writes without having read.
""")
class NoCrossAttention(_Parts):
    def forward(self, x, memory, memory_mask=None):
        x = self.norm_2(self.norm_1(x + self.look_back(x, memory_mask)))
        return self.norm_3(x + self.ffn(x))


@exercise.misconception("""
    Your cross-attention is called with x in place of the memory, so the source has no influence. The first argument
    asks, the second is looked through.
""")
class MemoryForgotten(_Parts):
    def look_through(self, x, memory, memory_mask):
        return self.cross_attention(x, x)[0]


@exercise.misconception("""
    There is no addition around your cross-attention: what was written so far survives only in the question that is
    asked. All three sublayers have a skip path.
""")
class NoResidualAroundCross(_Parts):
    def forward(self, x, memory, memory_mask=None):
        x = self.norm_1(x + self.look_back(x, memory_mask))
        x = self.norm_2(self.look_through(x, memory, memory_mask))
        return self.norm_3(x + self.ffn(x))


@exercise.misconception("""
    There is no addition in your block. Each sublayer should **add** to what came in (chapter 3).
""")
class NoResiduals(_Parts):
    def forward(self, x, memory, memory_mask=None):
        x = self.norm_1(self.look_back(x, memory_mask))
        x = self.norm_2(self.look_through(x, memory, memory_mask))
        return self.norm_3(self.ffn(x))


@exercise.misconception("""
    The feed-forward network stands before your cross-attention. It comes last, to work on what both attentions
    brought together.
""")
class NetworkBeforeCross(_Parts):
    def forward(self, x, memory, memory_mask=None):
        x = self.norm_1(x + self.look_back(x, memory_mask))
        x = self.norm_3(x + self.ffn(x))
        return self.norm_2(x + self.look_through(x, memory, memory_mask))


@exercise.misconception("""
    Your block normalizes once, at its end. In the paper's order each of the three additions is normalized.
""")
class OneNormAtTheEnd(_Parts):
    def forward(self, x, memory, memory_mask=None):
        x = x + self.look_back(x, memory_mask)
        x = x + self.look_through(x, memory, memory_mask)
        return self.norm_3(x + self.ffn(x))


@exercise.misconception("""
    Your block is pre-norm: each sublayer reads normalized tokens. Most newer decoders are built so, but this one
    follows the paper: add, then normalize the **sum**.
""")
class PreNorm(_Parts):
    def forward(self, x, memory, memory_mask=None):
        x = x + self.look_back(self.norm_1(x), memory_mask)
        x = x + self.look_through(self.norm_2(x), memory, memory_mask)
        return x + self.ffn(self.norm_3(x))


@exercise.misconception("""
    Your norms have changed places: norm_1 belongs to self-attention, norm_2 to cross-attention, norm_3 to the
    feed-forward network.
""")
class NormsExchanged(_Parts):
    def forward(self, x, memory, memory_mask=None):
        x = self.norm_2(x + self.look_back(x, memory_mask))
        x = self.norm_1(x + self.look_through(x, memory, memory_mask))
        return self.norm_3(x + self.ffn(x))


@exercise.misconception("""
    One norm serves in all places, and the others have no influence. While they are fresh nobody notices.
""")
class SameNormEverywhere(_Parts):
    def forward(self, x, memory, memory_mask=None):
        x = self.norm_1(x + self.look_back(x, memory_mask))
        x = self.norm_1(x + self.look_through(x, memory, memory_mask))
        return self.norm_1(x + self.ffn(x))


@exercise.misconception("""
    The last addition takes the block's input, so that what the two attentions found is lost except through the
    network.
""")
class LastResidualFromInput(_Parts):
    def forward(self, x, memory, memory_mask=None):
        a = self.norm_1(x + self.look_back(x, memory_mask))
        b = self.norm_2(a + self.look_through(a, memory, memory_mask))
        return self.norm_3(x + self.ffn(b))


@exercise.misconception("""
    `memory_mask` has no influence: it is accepted by `forward` and does not reach the cross-attention.
""")
class MemoryMaskDropped(_Parts):
    def look_through(self, x, memory, memory_mask):
        return self.cross_attention(x, memory)[0]


@exercise.misconception("""
    `memory_mask` went to the self-attention. It counts tokens of the source; the only mask there is the causal one.
    Where are the source's tokens the keys?
""")
class MemoryMaskOnSelfAttention(_Parts):
    def look_back(self, x, memory_mask):
        hidden = causal_mask(x.shape[1])
        if memory_mask is not None:
            hidden = hidden | memory_mask[:, None, None, :]
        return self.self_attention(x, x, x, hidden)[0]

    def look_through(self, x, memory, memory_mask):
        return self.cross_attention(x, memory)[0]


@exercise.misconception("""
    A causal mask lies over your memory as well. The source is no secret: each token may read all of it.
""")
class CausalOverMemory(_Parts):
    def look_through(self, x, memory, memory_mask):
        layer, (m, n) = self.cross_attention, (x.shape[1], memory.shape[1])
        twin = MultiHeadAttention(x.shape[-1], layer.num_heads).to(x.dtype)
        for name in ("w_q", "w_k", "w_v", "w_o"):
            setattr(twin, name, getattr(layer, name))
        hidden = torch.ones(m, n, dtype=torch.bool).triu(1)[None, None]
        hidden = hidden if memory_mask is None else hidden | memory_mask[:, None, None, :]
        return twin(x, memory, memory, hidden)[0]


@exercise.misconception("""
    Your feed-forward network uses GELU. That is `FeedForward`'s default; the paper's decoder has ReLU, and so has
    this block.
""")
class Gelu(_Parts):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.ffn = FeedForward(d_model, d_ff)


@exercise.misconception("""
    An attention returns a pair, output and weights, and a pair cannot be added to a tensor. Take the output out of it
    first.
""")
class PairAdded(_Parts):
    def look_back(self, x, memory_mask):
        return self.self_attention(x, x, x, causal_mask(x.shape[1]))


@exercise.misconception("""
    You return a pair. Here a block returns the new tokens alone, so that blocks can be stacked.
""")
class PairReturned(_Parts):
    def forward(self, x, memory, memory_mask=None):
        return super().forward(x, memory, memory_mask), self.cross_attention(x, memory, memory_mask)[1]


@exercise.alternative
class InOneLineEach(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norm_3, self.norm_2, self.norm_1 = (nn.LayerNorm(d_model) for _ in range(3))
        self.ffn = FeedForward(d_model, d_ff, activation="relu")
        self.cross_attention = CrossAttention(d_model, num_heads)
        self.self_attention = MultiHeadAttention(d_model, num_heads)

    def forward(self, x, memory, memory_mask=None):
        future = torch.triu(torch.ones(x.size(1), x.size(1)), diagonal=1).bool()
        h = self.norm_1(x + self.self_attention(x, x, x, mask=future)[0])
        h = self.norm_2(h + self.cross_attention(h, memory, memory_mask=memory_mask)[0])
        return self.norm_3(h + self.ffn(h))


@exercise.alternative
class OverACache(_Parts):
    def look_through(self, x, memory, memory_mask):
        return attend(self.cross_attention, x, *cache_memory(self.cross_attention, memory), memory_mask)[0]


@exercise.alternative
class WithChapterTwosLayerForBoth(_Parts):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)

    def look_through(self, x, memory, memory_mask):
        mask = None if memory_mask is None else memory_mask[:, None, None, :]
        return self.cross_attention(x, memory, memory, mask)[0]


@exercise.alternative
class WithoutModulesForReLU(_Parts):
    def forward(self, x, memory, memory_mask=None):
        hidden = ~torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))
        a = self.norm_1(self.self_attention(x, x, x, hidden[None, None])[0] + x)
        b = self.norm_2(self.look_through(a, memory, memory_mask) + a)
        return self.norm_3(self.ffn.linear_2(torch.clamp(self.ffn.linear_1(b), min=0)) + b)
