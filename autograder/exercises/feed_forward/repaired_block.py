"""Check `repaired_block`: a pre-norm block with three faults that fresh parts hide."""

import torch
from torch import nn

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.feed_forward import CHAPTER
from autograder.exercises.feed_forward.feed_forward import drawn_state
from autograder.exercises.multi_head_attention.sizes import HEADS, layer_state
from autograder.program import Program, Run, call
from autograder.values import Named
from course_lib import block
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import MultiHeadAttention


def parts(draw: Draw, silent: tuple[str, ...] = ()) -> Program:
    """Draw tokens and four modules; the modules in `silent` get weights 0 and so add nothing."""
    batch, sequence, d_head, wider = (int(size) for size in draw.random.permutation([2, 4, 5, 7]))
    d_model = HEADS * d_head
    d_ff = d_model + wider
    states = {
        "attention": layer_state(draw, d_model),
        "ffn": drawn_state(draw, d_model, d_ff),
        "norm_1": draw.state(weight=(d_model,), bias=(d_model,)),
        "norm_2": draw.state(weight=(d_model,), bias=(d_model,)),
    }
    for name in silent:
        states[name] = {key: torch.zeros_like(weight) for key, weight in states[name].items()}
    return call(
        draw.normal(batch, sequence, d_model, scale=2.0, mean=0.5),
        Named("MultiHeadAttention", (d_model, HEADS), states["attention"]),
        Named("FeedForward", (d_model, d_ff), states["ffn"]),
        Named("LayerNorm", (d_model,), states["norm_1"]),
        Named("LayerNorm", (d_model,), states["norm_2"]),
    )


def silent(draw: Draw) -> Program:
    """Let both sublayers add nothing."""
    return parts(draw, ("attention", "ffn"))


def handed_through(program: Program, run: Run) -> str | None:
    """Look at what is left of x where the sublayers add nothing."""
    x, attention, ffn, *_ = program.steps[0].args
    if any(weight.any() for part in (attention, ffn) for weight in part.state.values()):
        return None
    if torch.allclose(run.outcomes[0], x):
        return None
    return "both sublayers were replaced by ones that add nothing, and your block does not hand x through unchanged"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=block.pre_norm_block,
    name="repaired_block",
    returns=("the result",),
    properties=[handed_through],
    named={"MultiHeadAttention": MultiHeadAttention, "FeedForward": FeedForward, "LayerNorm": nn.LayerNorm},
    forbids=["torch.nn.TransformerEncoderLayer", "course_lib.residual.pre_norm_step"],
    forbids_because="this exercise asks you to mend the code that is there",
    cases=[
        Case("drawn parts, all sizes differ", parts),
        Case("sublayers that add nothing", silent),
        Case("a network that adds nothing", lambda draw: parts(draw, ("ffn",)), hidden=True),
        Case("an attention that adds nothing", lambda draw: parts(draw, ("attention",)), hidden=True),
        Case("float64", parts, hidden=True, dtype="float64"),
    ],
)


def _attend(attention, tokens):
    return attention(tokens, tokens, tokens)[0]


@exercise.misconception("""
    This is still the code as it was found: all three reports hold. Take the first: let the network add nothing, and
    look for what attention found. Which variable does the last line add to?
""")
def as_it_was_found(x, attention, ffn, norm_1, norm_2):
    normalized = norm_1(x)
    attended = normalized + _attend(attention, normalized)
    return x + ffn(norm_1(attended))


@exercise.misconception("""
    One fault is left, in the first addition: the skip path starts behind the norm. Where the sublayers add nothing, x
    should come out as it went in; its scale is lost in your block.
""")
def first_residual_left(x, attention, ffn, norm_1, norm_2):
    normalized = norm_1(x)
    attended = normalized + _attend(attention, normalized)
    return attended + ffn(norm_2(attended))


@exercise.misconception("""
    One fault is left, in the second addition: it starts from the block's input again. Let the network add nothing: what
    attention found should still be in the output.
""")
def second_residual_left(x, attention, ffn, norm_1, norm_2):
    attended = x + _attend(attention, norm_1(x))
    return x + ffn(norm_2(attended))


@exercise.misconception("""
    One fault is left, in a norm: norm_1 serves both sublayers, and norm_2 has no influence. With fresh norms, gain 1
    and bias 0, nobody can see it.
""")
def norm_left(x, attention, ffn, norm_1, norm_2):
    attended = x + _attend(attention, norm_1(x))
    return attended + ffn(norm_1(attended))


@exercise.misconception("""
    The norm is mended; both additions are still wrong. Each should start from what its own sublayer was given, before
    the norm.
""")
def both_residuals_left(x, attention, ffn, norm_1, norm_2):
    normalized = norm_1(x)
    attended = normalized + _attend(attention, normalized)
    return x + ffn(norm_2(attended))


@exercise.misconception("""
    The second addition is mended. Two faults are left: the first skip path starts behind the norm, and one of the two
    norms is never used.
""")
def first_residual_and_norm_left(x, attention, ffn, norm_1, norm_2):
    normalized = norm_1(x)
    attended = normalized + _attend(attention, normalized)
    return attended + ffn(norm_1(attended))


@exercise.misconception("""
    The first addition is mended. Two faults are left, both in the last line: what it adds to, and which norm it uses.
""")
def second_residual_and_norm_left(x, attention, ffn, norm_1, norm_2):
    attended = x + _attend(attention, norm_1(x))
    return x + ffn(norm_1(attended))


@exercise.misconception("""
    You made it a post-norm block: the norm stands after the additions. That is the paper's order and a sound block, but
    the contract asks for pre-norm: the skip path is never normalized.
""")
def post_norm(x, attention, ffn, norm_1, norm_2):
    attended = norm_1(x + _attend(attention, x))
    return norm_2(attended + ffn(attended))


@exercise.misconception("""
    Attention reads tokens that are not normalized. Pre-norm puts a norm in front of each sublayer, and leaves the skip
    path alone.
""")
def attention_reads_raw_tokens(x, attention, ffn, norm_1, norm_2):
    attended = x + _attend(attention, x)
    return attended + ffn(norm_2(attended))


@exercise.misconception("""
    Only the queries are normalized; keys and values come from x as it was. All three read the same tokens.
""")
def only_queries_normalized(x, attention, ffn, norm_1, norm_2):
    attended = x + attention(norm_1(x), x, x)[0]
    return attended + ffn(norm_2(attended))


@exercise.misconception("""
    In your second addition the skip path starts behind norm_2. What the network **reads** is normalized; what it is
    added to is not.
""")
def second_residual_normalized(x, attention, ffn, norm_1, norm_2):
    attended = x + _attend(attention, norm_1(x))
    normalized = norm_2(attended)
    return normalized + ffn(normalized)


@exercise.misconception("""
    Your feed-forward network reads the block's input, beside attention and not after it. Some large models do so on
    purpose ("parallel"); here it transforms what attention mixed.
""")
def parallel(x, attention, ffn, norm_1, norm_2):
    return x + _attend(attention, norm_1(x)) + ffn(norm_2(x))


@exercise.misconception("""
    `attention` returns a pair, output and weights, and a pair cannot be added to a tensor. Take the output out of it.
""")
def pair_added(x, attention, ffn, norm_1, norm_2):
    normalized = norm_1(x)
    attended = x + attention(normalized, normalized, normalized)
    return attended + ffn(norm_2(attended))


@exercise.misconception("""
    Your result is normalized once more at the end. A stack of pre-norm blocks has one such norm, after its last block;
    inside a block there is none on the way out.
""")
def normalized_at_the_end(x, attention, ffn, norm_1, norm_2):
    attended = x + _attend(attention, norm_1(x))
    return norm_2(attended + ffn(norm_2(attended)))


@exercise.alternative
def in_two_lines(x, attention, ffn, norm_1, norm_2):
    attended = x + attention(*[norm_1(x)] * 3)[0]
    return attended + ffn(norm_2(attended))


@exercise.alternative
def with_all_sums_at_the_end(x, attention, ffn, norm_1, norm_2):
    normalized = norm_1(x)
    found, _ = attention(normalized, normalized, normalized)
    return torch.stack([x, found, ffn(norm_2(x + found))]).sum(0)


@exercise.alternative
def with_a_helper(x, attention, ffn, norm_1, norm_2):
    def add(tokens, sublayer, norm):
        return tokens + sublayer(norm(tokens))

    return add(add(x, lambda tokens: attention(tokens, tokens, tokens)[0], norm_1), ffn, norm_2)


@exercise.alternative
def in_place_on_a_copy(x, attention, ffn, norm_1, norm_2):
    stream = x.clone()
    normalized = norm_1(stream)
    stream += attention(normalized, normalized, normalized)[0]
    stream += ffn(norm_2(stream))
    return stream
