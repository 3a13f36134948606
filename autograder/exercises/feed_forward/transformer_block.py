"""Check `TransformerBlock`: the parts of three chapters, put together in both norm orders."""

import torch

from autograder.exercise import Case, Exercise
from autograder.exercises.feed_forward import CHAPTER
from autograder.exercises.feed_forward.block_cases import padding_mask, whole_block
from autograder.exercises.feed_forward.block_forms import ACCEPTED_FORMS, TanhBlock
from autograder.exercises.feed_forward.module import called, equals_one_of, repeatable
from course_lib import block

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=block.TransformerBlock,
    returns=("the result",),
    properties=[repeatable],
    forbids=["torch.nn.TransformerEncoderLayer", "course_lib.block.TransformerBlock"],
    forbids_because="this exercise asks you to put the block together from its parts",
    cases=[
        Case("post-norm, the default, two calls", lambda draw: whole_block(draw, twice=True)),
        Case("pre-norm", lambda draw: whole_block(draw, norm_first=True)),
        Case("post-norm with a mask", lambda draw: whole_block(draw, masked=True)),
        Case(
            "pre-norm, sublayers that add nothing",
            lambda draw: whole_block(draw, silent=("attention.w_o", "ffn.linear_2"), norm_first=True),
        ),
        Case("pre-norm with a mask", lambda draw: whole_block(draw, masked=True, norm_first=True), hidden=True),
        Case("a mask for each batch row, by name", padding_mask, hidden=True),
        Case(
            "GELU",
            lambda draw: whole_block(draw, activation="gelu"),
            judge=equals_one_of(block.TransformerBlock, TanhBlock),
            hidden=True,
        ),
        Case("gradients, post-norm", lambda draw: whole_block(draw, gradients=True), hidden=True),
        Case("gradients, pre-norm", lambda draw: whole_block(draw, gradients=True, norm_first=True), hidden=True),
        Case("float64", lambda draw: whole_block(draw, norm_first=True), hidden=True, dtype="float64"),
    ],
)


class _Parts(block.TransformerBlock):
    """The block with its two orders as methods, so that a belief can replace one of them."""

    def attend(self, x, mask):
        return self.attention(x, x, x, mask)[0]

    def post(self, x, mask):
        x = self.norm_1(x + self.attend(x, mask))
        return self.norm_2(x + self.ffn(x))

    def pre(self, x, mask):
        x = x + self.attend(self.norm_1(x), mask)
        return x + self.ffn(self.norm_2(x))

    def forward(self, x, mask=None):
        return self.pre(x, mask) if self.norm_first else self.post(x, mask)


@exercise.misconception("""
    Your block is pre-norm whatever `norm_first` says. The default here is the paper's order, norm after the addition.
""")
class AlwaysPreNorm(_Parts):
    def post(self, x, mask):
        return self.pre(x, mask)


@exercise.misconception("""
    Your block is post-norm whatever `norm_first` says: with `norm_first=True` each sublayer should read normalized
    tokens, and the skip path carry them as they are.
""")
class AlwaysPostNorm(_Parts):
    def pre(self, x, mask):
        return self.post(x, mask)


@exercise.misconception("""
    The two orders are exchanged: `norm_first=True` gives you post-norm, and the default gives pre-norm.
""")
class OrdersExchanged(_Parts):
    def forward(self, x, mask=None):
        return self.post(x, mask) if self.norm_first else self.pre(x, mask)


@exercise.misconception("""
    In pre-norm your skip path starts behind the norm. With sublayers that add nothing a block should hand x through
    unchanged; yours returns a normalized x. Which variable do you add at the end?
""")
class ResidualFromNormalized(_Parts):
    def pre(self, x, mask):
        normalized = self.norm_1(x)
        x = normalized + self.attend(normalized, mask)
        normalized = self.norm_2(x)
        return normalized + self.ffn(normalized)


@exercise.misconception("""
    The second addition takes the block's input, so what attention found is lost except through the network. Put the
    network to zero: what is left of attention?
""")
class SecondResidualFromInput(_Parts):
    def post(self, x, mask):
        attended = self.norm_1(x + self.attend(x, mask))
        return self.norm_2(x + self.ffn(attended))

    def pre(self, x, mask):
        attended = x + self.attend(self.norm_1(x), mask)
        return x + self.ffn(self.norm_2(attended))


@exercise.misconception("""
    The feed-forward network reads the block's input: it works beside attention, not after it. Some large models do it
    so on purpose ("parallel"), because it saves time. Here the network transforms what attention mixed.
""")
class ParallelSublayers(_Parts):
    def post(self, x, mask):
        return self.norm_2(self.norm_1(x + self.attend(x, mask)) + self.ffn(x))

    def pre(self, x, mask):
        return x + self.attend(self.norm_1(x), mask) + self.ffn(self.norm_2(x))


@exercise.misconception("""
    You normalize what a sublayer returns and then add: x + norm(f(x)). Post-norm normalizes the **sum**, so that every
    output of a block has the same scale. (Your order exists too; a few models use it, under another name.)
""")
class NormOnBranchOnly(_Parts):
    def post(self, x, mask):
        x = x + self.norm_1(self.attend(x, mask))
        return x + self.norm_2(self.ffn(x))


@exercise.misconception("""
    norm_1 is used in both places, and norm_2 has no influence. While the two are fresh nobody notices.
""")
class SameNormTwice(_Parts):
    def post(self, x, mask):
        x = self.norm_1(x + self.attend(x, mask))
        return self.norm_1(x + self.ffn(x))

    def pre(self, x, mask):
        x = x + self.attend(self.norm_1(x), mask)
        return x + self.ffn(self.norm_1(x))


@exercise.misconception("""
    The two norms are exchanged: norm_1 belongs to attention, norm_2 to the feed-forward network.
""")
class NormsExchanged(_Parts):
    def post(self, x, mask):
        x = self.norm_2(x + self.attend(x, mask))
        return self.norm_1(x + self.ffn(x))

    def pre(self, x, mask):
        x = x + self.attend(self.norm_2(x), mask)
        return x + self.ffn(self.norm_1(x))


@exercise.misconception("""
    The feed-forward network comes first in your block. Attention mixes the tokens; then each one is transformed.
""")
class NetworkFirst(_Parts):
    def post(self, x, mask):
        x = self.norm_2(x + self.ffn(x))
        return self.norm_1(x + self.attend(x, mask))

    def pre(self, x, mask):
        x = x + self.ffn(self.norm_2(x))
        return x + self.attend(self.norm_1(x), mask)


@exercise.misconception("""
    There is no addition around your feed-forward network: what it does not write is lost. Both sublayers have a skip
    path.
""")
class NoResidualAroundNetwork(_Parts):
    def post(self, x, mask):
        return self.norm_2(self.ffn(self.norm_1(x + self.attend(x, mask))))

    def pre(self, x, mask):
        return self.ffn(self.norm_2(x + self.attend(self.norm_1(x), mask)))


@exercise.misconception("""
    There is no addition in your block. Each sublayer should **add** to what came in; that is what lets a stack of many
    blocks learn (chapter 3).
""")
class NoResiduals(_Parts):
    def post(self, x, mask):
        return self.norm_2(self.ffn(self.norm_1(self.attend(x, mask))))

    def pre(self, x, mask):
        return self.ffn(self.norm_2(self.attend(self.norm_1(x), mask)))


@exercise.misconception("""
    In pre-norm your feed-forward network reads tokens that are not normalized. Each of the two sublayers has a norm in
    front.
""")
class SecondNormMissing(_Parts):
    def pre(self, x, mask):
        x = x + self.attend(self.norm_1(x), mask)
        return x + self.ffn(x)


@exercise.misconception("""
    In pre-norm you normalize the queries only, and keys and values come from x as it was. All three read the same
    normalized tokens.
""")
class OnlyQueriesNormalized(_Parts):
    def pre(self, x, mask):
        x = x + self.attention(self.norm_1(x), x, x, mask)[0]
        return x + self.ffn(self.norm_2(x))


@exercise.misconception("""
    Your mask has no influence: it is accepted by `forward` and does not reach attention.
""")
class MaskIgnored(_Parts):
    def attend(self, x, mask):
        return super().attend(x, None)


@exercise.misconception("""
    Your mask works the wrong way round. Here, as in `MultiHeadAttention`, True hides, so it can be handed on as it
    is.
""")
class MaskInverted(_Parts):
    def attend(self, x, mask):
        return super().attend(x, None if mask is None else ~mask)


@exercise.misconception("""
    Your block hides the future by itself, as document C's does. Here the caller decides: without a mask every token
    sees all others.
""")
class CausalByItself(_Parts):
    def attend(self, x, mask):
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return super().attend(x, future if mask is None else future | mask)


@exercise.misconception("""
    The activation has no influence on your block: hand its name on to `FeedForward`.
""")
class ActivationNotHandedOn(_Parts):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation="relu"):
        super().__init__(d_model, num_heads, d_ff, norm_first)


@exercise.misconception("""
    Your block uses GELU where nothing is said. That is `FeedForward`'s default; the block's is "relu", as in the paper
    and in the framework.
""")
class GeluByDefault(_Parts):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation="gelu"):
        super().__init__(d_model, num_heads, d_ff, norm_first, activation)


@exercise.misconception("""
    `attention` returns a pair, output and weights, and a pair cannot be added to a tensor. Take the output out of it
    first.
""")
class PairAdded(_Parts):
    def attend(self, x, mask):
        return self.attention(x, x, x, mask)


@exercise.misconception("""
    You return a pair, as document C's block does. Here a block returns the new tokens alone, so that blocks can be
    stacked: the output of one is the input of the next.
""")
class PairReturned(_Parts):
    def forward(self, x, mask=None):
        read = self.norm_1(x) if self.norm_first else x
        return super().forward(x, mask), self.attention(read, read, read, mask)[1]


@exercise.misconception("""
    d_ff does not reach your feed-forward network; its layers are built with another width.
""")
def hidden_width_built_in(d_model, num_heads, d_ff, norm_first=False, activation="relu"):
    return called("TransformerBlock", _Parts)(d_model, num_heads, 4 * d_model, norm_first, activation)


@exercise.misconception("""
    Your attention is the framework's `nn.MultiheadAttention`, which stores its weights under other names. Use
    `multi_head.MultiHeadAttention`, the layer of chapter 2.
""")
def attention_of_the_framework(d_model, num_heads, d_ff, norm_first=False, activation="relu"):
    made = called("TransformerBlock", _Parts)(d_model, num_heads, d_ff, norm_first, activation)
    made.attention = torch.nn.MultiheadAttention(d_model, num_heads, batch_first=True)
    return made


for form in ACCEPTED_FORMS:
    exercise.alternative(form)
