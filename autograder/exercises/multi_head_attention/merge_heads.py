"""Check `merge_heads`: lay the heads of every token side by side."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.multi_head_attention import CHAPTER
from autograder.exercises.multi_head_attention.sizes import sizes
from autograder.program import Program, call
from course_lib import multi_head


def drawn(draw: Draw) -> Program:
    """Draw heads; batch, heads, sequence and head width all differ."""
    size = sizes(draw)
    return call(draw.normal(size.batch, size.heads, size.query, size.d_head))


def numbered(draw: Draw) -> Program:
    """Write into every number where it is: head 2, token 1, feature 3 holds 213."""
    head, token, feature = torch.arange(3), torch.arange(5), torch.arange(4)
    x = 100 * head[:, None, None] + 10 * token[:, None] + feature
    return call(draw.array(x.numpy().astype(float))[None])


def split_before(draw: Draw) -> Program:
    """Hand over what a transpose leaves behind: a tensor whose numbers do not lie in the order of its axes."""
    size = sizes(draw)
    return call(multi_head.split_heads(draw.normal(size.batch, size.query, size.d_model), size.heads))


def one_token(draw: Draw) -> Program:
    """Merge the heads of a single token, as a decoder does at every step."""
    size = sizes(draw)
    return call(draw.normal(size.batch, size.heads, 1, size.d_head))


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=multi_head.merge_heads,
    returns=("the result",),
    cases=[
        Case("3 heads of numbered features", numbered),
        Case("all sizes differ", drawn),
        Case("straight from a split", split_before, hidden=True),
        Case("one token", one_token, hidden=True),
        Case("float64", drawn, hidden=True, dtype="float64"),
    ],
)


@exercise.misconception("""
    The shape is right, but row 0 of yours mixes tokens: it starts with token 0 of head 0 and goes on with
    token 1 of head 0. `reshape` never moves a number, it only cuts the same line of numbers at other places.
    Print the numbered case: do all entries of row 0 belong to token 0? Which axis must move before the cut?
""")
def reshape_without_transpose(x):
    batch, heads, sequence, d_head = x.shape
    return x.reshape(batch, sequence, heads * d_head)


@exercise.misconception("""
    Every token keeps its numbers, but they are dealt out: feature 0 of every head, then feature 1 of every
    head. Head 0 should come as a whole, then head 1, or the output projection meets its inputs in another
    order than the split left them in.
""")
def heads_interleaved(x):
    return x.permute(0, 2, 3, 1).flatten(-2)


@exercise.misconception("""
    Your heads are added up, so d_head features are left. Nothing is added here: the heads are laid side by
    side, and it is the output projection, later, that mixes them.
""")
def heads_added(x):
    return x.sum(1)


@exercise.misconception("""
    Your heads are averaged, so every head shows the same features. Each head found something else; lay the
    heads side by side and let the output projection weigh them.
""")
def heads_averaged(x):
    return x.mean(1).repeat(1, 1, x.shape[1])


@exercise.misconception("""
    You lay the heads one after the other along the sequence: (batch, heads · sequence, d_head). They belong
    side by side along the features, so that every token stays one row.
""")
def heads_along_the_sequence(x):
    return x.flatten(1, 2)


@exercise.misconception("""
    The head axis has moved next to the features, but the two are still apart: (batch, sequence, heads,
    d_head). Join them into one axis of d_model.
""")
def axes_not_joined(x):
    return x.transpose(1, 2)


@exercise.misconception("""
    `view` refuses here: after a transpose the numbers no longer lie in the order of the axes, and `view` may
    not move them. Use `reshape`, or `.contiguous()` first. Do the transpose all the same: without it `view`
    stops complaining and the tokens are mixed.
""")
def view_after_transpose(x):
    return x.transpose(1, 2).view(x.shape[0], x.shape[2], -1)


@exercise.alternative
def permuted_then_reshaped(x):
    return x.permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


@exercise.alternative
def contiguous_then_view(x):
    return x.transpose(1, 2).contiguous().view(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])


@exercise.alternative
def concatenated(x):
    return torch.cat([x[:, head] for head in range(x.shape[1])], dim=-1)


@exercise.alternative
def unbound_and_concatenated(x):
    return torch.cat(x.unbind(1), -1)


@exercise.alternative
def by_einsum(x):
    return torch.einsum("bhnd->bnhd", x).flatten(2)
