"""Check `repaired_multi_head`: the bug hunt. The starter has right shapes, a clean round trip and three faults."""

import math

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises import library_calls
from autograder.exercises.multi_head_attention import CHAPTER
from autograder.exercises.multi_head_attention.sizes import sizes
from autograder.program import Program, call
from course_lib import multi_head
from course_lib.multi_head import merge_heads, split_heads
from course_lib.tensor_attention import tensor_attention


def drawn(draw: Draw, heads: int | None = None) -> Program:
    """Draw tokens and four matrices; batch, heads, sequence and head width all differ."""
    size = sizes(draw)
    matrices = [draw.normal(size.d_model, size.d_model, scale=0.3) for _ in range(4)]
    return call(draw.normal(size.batch, size.query, size.d_model), *matrices, heads or size.heads)


def heads_of_three_features(draw: Draw) -> Program:
    """Cut the same width into another number of heads."""
    matrices = [draw.normal(15, 15, scale=0.3) for _ in range(4)]
    return call(draw.normal(2, 4, 15), *matrices, 5)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    name="repaired_multi_head",
    reference=multi_head.multi_head_attention,
    returns=("the output",),
    forbids=library_calls.ATTENTION_LAYER,
    forbids_because="this exercise asks you to mend the code that is there",
    cases=[
        Case("3 heads, all sizes different", drawn),
        Case("a single head", lambda draw: drawn(draw, heads=1)),
        Case("other sizes", drawn, hidden=True),
        Case("heads of 3 features", heads_of_three_features, hidden=True),
        Case("float64", drawn, hidden=True, dtype="float64"),
    ],
)


def _with_faults(x, w_q, w_k, w_v, w_o, num_heads, *, split=False, scale=False, merge=False):
    """Compute with the chosen faults of the starter left in."""

    def cut(features):
        if split:
            return features.reshape(len(x), num_heads, x.shape[1], -1)
        return split_heads(features, num_heads)

    query, key, value = (cut(x @ matrix) for matrix in (w_q, w_k, w_v))
    output, _ = tensor_attention(query / math.sqrt(num_heads) if scale else query, key, value)
    return (output.reshape(x.shape) if merge else merge_heads(output)) @ w_o


@exercise.misconception("""
    All three faults are still there. Start with the split: fill x with numbers that say which token and which
    feature they are, and print the first head. Does it hold the first features of every token?
""")
def as_it_was(x, w_q, w_k, w_v, w_o, num_heads):
    return _with_faults(x, w_q, w_k, w_v, w_o, num_heads, split=True, scale=True, merge=True)


@exercise.misconception("""
    The scale is right now. What is left cannot be seen with one head: both the split and the merge re-cut the
    memory without moving an axis. They undo each other, so a round trip proves nothing; look at the heads in
    between.
""")
def split_and_merge_left(x, w_q, w_k, w_v, w_o, num_heads):
    return _with_faults(x, w_q, w_k, w_v, w_o, num_heads, split=True, merge=True)


@exercise.misconception("""
    The merge moves its axis now, and two faults are left. Reorder the tokens of x: is your output reordered
    in the same way? And with how many terms does a score add up, once the features are cut into heads?
""")
def split_and_scale_left(x, w_q, w_k, w_v, w_o, num_heads):
    return _with_faults(x, w_q, w_k, w_v, w_o, num_heads, split=True, scale=True)


@exercise.misconception("""
    The split moves its axis now, and two faults are left: one where the heads come together again, and one in
    the size of the scores. With one head both are invisible, which is why that case passes.
""")
def merge_and_scale_left(x, w_q, w_k, w_v, w_o, num_heads):
    return _with_faults(x, w_q, w_k, w_v, w_o, num_heads, scale=True, merge=True)


@exercise.misconception("""
    One fault is left: the split. Its `view` has the right shape and the wrong numbers, because it cuts whole
    tokens into heads. Cut the last axis in two, then move the head axis forward.
""")
def split_left(x, w_q, w_k, w_v, w_o, num_heads):
    return _with_faults(x, w_q, w_k, w_v, w_o, num_heads, split=True)


@exercise.misconception("""
    One fault is left: the merge. After the heads have attended, the head axis must move back behind the
    sequence before the two last axes become one.
""")
def merge_left(x, w_q, w_k, w_v, w_o, num_heads):
    return _with_faults(x, w_q, w_k, w_v, w_o, num_heads, merge=True)


@exercise.misconception("""
    One fault is left: the scale. The tokens go where they should, but the weights are too even, as if a score
    added up d_model products. How many does it add up in one head?
""")
def scale_left(x, w_q, w_k, w_v, w_o, num_heads):
    return _with_faults(x, w_q, w_k, w_v, w_o, num_heads, scale=True)


@exercise.misconception("""
    The three faults are mended, but the output projection is gone. It was right as it was: what is multiplied
    by `w_o` at the end?
""")
def output_projection_lost(x, w_q, w_k, w_v, w_o, num_heads):
    query, key, value = (split_heads(x @ matrix, num_heads) for matrix in (w_q, w_k, w_v))
    return merge_heads(tensor_attention(query, key, value)[0])


@exercise.misconception("""
    The heads are whole now, but the scores are not divided by anything. The root was right, the number under
    it was not.
""")
def scale_lost(x, w_q, w_k, w_v, w_o, num_heads):
    query, key, value = (split_heads(x @ matrix, num_heads) for matrix in (w_q, w_k, w_v))
    query = query * math.sqrt(query.shape[-1])
    return merge_heads(tensor_attention(query, key, value)[0]) @ w_o


@exercise.alternative
def with_permute_and_reshape(x, w_q, w_k, w_v, w_o, num_heads):
    batch, sequence, d_model = x.shape
    shape = (batch, sequence, num_heads, d_model // num_heads)
    query, key, value = ((x @ matrix).view(shape).permute(0, 2, 1, 3) for matrix in (w_q, w_k, w_v))
    weights = (query @ key.transpose(-1, -2) / (d_model // num_heads) ** 0.5).softmax(-1)
    return (weights @ value).transpose(1, 2).reshape(batch, sequence, d_model) @ w_o


@exercise.alternative
def by_the_layer(x, w_q, w_k, w_v, w_o, num_heads):
    layer = multi_head.MultiHeadAttention(x.shape[-1], num_heads, bias=False).to(x.dtype)
    matrices = {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}
    layer.load_state_dict({f"{name}.weight": matrix.T for name, matrix in matrices.items()})
    return layer(x, x, x)[0]


@exercise.alternative
def one_head_at_a_time(x, w_q, w_k, w_v, w_o, num_heads):
    width = x.shape[-1] // num_heads
    total = 0
    for head in range(num_heads):
        columns = slice(head * width, (head + 1) * width)
        found, _ = tensor_attention(x @ w_q[:, columns], x @ w_k[:, columns], x @ w_v[:, columns])
        total = total + found @ w_o[columns]
    return total
