"""Check `MultiHeadAttention`: the whole layer, with masks."""

from dataclasses import replace

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises import library_calls
from autograder.exercises.attention.properties import rows_sum_to_one
from autograder.exercises.multi_head_attention import CHAPTER
from autograder.exercises.multi_head_attention.sizes import HEADS, Sizes, layer_state, sizes
from autograder.program import Program, Run, build
from autograder.values import Raised
from course_lib import multi_head

MASK_ERRORS = ("TypeError", "ValueError")


def layer(draw: Draw, size: Sizes, bias: bool = True) -> Program:
    """Build a layer and load drawn weights."""
    state = layer_state(draw, size.d_model, bias)
    return build(size.d_model, size.heads, **({} if bias else {"bias": False})).load(state)


def tokens(draw: Draw, size: Sizes) -> tuple:
    """Draw queries, and keys and values that differ from each other."""
    key_shape = (size.batch, size.key, size.d_model)
    query = draw.normal(size.batch, size.query, size.d_model)
    return query, draw.normal(*key_shape), draw.normal(*key_shape)


def self_attention(draw: Draw) -> Program:
    """Let the tokens of a batch look at each other."""
    size = sizes(draw)
    x = draw.normal(size.batch, size.query, size.d_model)
    return layer(draw, size).call(x, x, x)


def other_keys(draw: Draw, bias: bool = True) -> Program:
    """Let queries look at other tokens, and fetch from yet others."""
    size = sizes(draw)
    return layer(draw, size, bias).call(*tokens(draw, size))


def masked(draw: Draw) -> Program:
    """Hide some keys from each query, the same in every batch row and head."""
    size = sizes(draw)
    return layer(draw, size).call(*tokens(draw, size), draw.mask(size.query, size.key))


def mask_per_row(draw: Draw) -> Program:
    """Give every batch row a mask of its own, with 4 axes."""
    size = sizes(draw)
    return layer(draw, size).call(*tokens(draw, size), mask=draw.mask(size.batch, 1, size.query, size.key))


def mask_per_head(draw: Draw) -> Program:
    """Give every head a mask of its own, with 4 axes."""
    size = sizes(draw)
    return layer(draw, size).call(*tokens(draw, size), draw.mask(1, size.heads, size.query, size.key))


def blind_query(draw: Draw) -> Program:
    """Hide every key from one query; look at its output, its weights and the gradients."""
    size = replace(sizes(draw), query=4, key=6)
    mask = draw.mask(size.query, size.key, share=0)  # other queries see several keys: a lone one has no gradient
    mask[1] = True
    found = tokens(draw, size)
    names = ("w_q.weight", "w_v.bias", "w_o.weight")
    return layer(draw, size).call(*found, mask).gradients(*found, mask, wrt=(0, 1, 2, *names))


def called_twice(draw: Draw) -> Program:
    """Call one layer twice with other tokens of the same sizes, first with a mask: it must not remember."""
    size = replace(sizes(draw), heads=2 * HEADS)
    mask = draw.mask(size.query, size.key)
    return layer(draw, size).call(*tokens(draw, size), mask).call(*tokens(draw, size))


def one_query(draw: Draw) -> Program:
    """Let one query of one batch row look at several keys, as a decoder does at every step."""
    size = replace(sizes(draw), batch=1, query=1)
    return layer(draw, size).call(*tokens(draw, size))


def ambiguous_mask(draw: Draw) -> Program:
    """Give a mask with 3 axes where there are as many batch rows as heads: both readings fit."""
    drawn = sizes(draw)
    size = Sizes(HEADS, HEADS, drawn.query, drawn.key, drawn.d_head)
    return layer(draw, size).call(*tokens(draw, size), draw.mask(HEADS, size.query, size.key))


def float_mask(draw: Draw) -> Program:
    """Give a mask of zeros and ones."""
    size = sizes(draw)
    mask = draw.mask(size.query, size.key)
    return layer(draw, size).call(*tokens(draw, size), mask.to(draw.normal(1).dtype))


def indivisible(draw: Draw) -> Program:
    """Ask for heads that do not divide the width."""
    size = sizes(draw)
    return build(size.d_model + 1, size.heads)


def refuses_numbers(program: Program, run: Run) -> str | None:
    """Accept either kind of error for a mask that is not boolean."""
    outcome = run.outcomes[-1]
    if isinstance(outcome, Raised) and any(outcome.is_a(name) for name in MASK_ERRORS):
        return None
    if isinstance(outcome, Raised):
        return f"expected a TypeError for a mask that is not boolean, but your code raised {outcome.type_name}"
    return "expected a TypeError here: a mask of zeros and ones does not say which of the two hides"


def weights_are_shares(program: Program, run: Run) -> str | None:
    """Look at the weights of the first call."""
    return rows_sum_to_one(run.outcomes[0][1].numpy())


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=multi_head.MultiHeadAttention,
    returns=("output", "weights"),
    properties=[weights_are_shares],
    forbids=[
        *library_calls.ATTENTION_LAYER,
        "course_lib.multi_head.MultiHeadAttention",
    ],
    forbids_because="this exercise asks you to build the layer from projections and heads",
    cases=[
        Case("self-attention with 3 heads", self_attention),
        Case("queries, keys and values from three places", other_keys),
        Case("a mask of 2 axes", masked),
        Case("a mask for each batch row", mask_per_row, hidden=True),
        Case("a mask for each head", mask_per_head, hidden=True),
        Case("one query sees nothing", blind_query, hidden=True),
        Case("a mask of 3 axes, and as many rows as heads", ambiguous_mask, hidden=True),
        Case("a mask of zeros and ones", float_mask, hidden=True, judge=refuses_numbers),
        Case("called twice, with 6 heads", called_twice, hidden=True),
        Case("one query of one batch row", one_query, hidden=True),
        Case("without biases", lambda draw: other_keys(draw, bias=False), hidden=True),
        Case("a width that the heads do not divide", indivisible, hidden=True),
        Case("float64", masked, hidden=True, dtype="float64"),
    ],
)
