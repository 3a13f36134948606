"""Check `CrossAttention`: queries from one side, keys and values from the other, and padding in the memory."""

from dataclasses import replace

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises import library_calls
from autograder.exercises.cross_attention import CHAPTER
from autograder.exercises.cross_attention.sizes import LOUD, Sizes, padding, sides, sizes
from autograder.exercises.multi_head_attention.multi_head_attention import refuses_numbers, weights_are_shares
from autograder.exercises.multi_head_attention.sizes import layer_state
from autograder.program import Program, build
from course_lib import cross_attention


def layer(draw: Draw, size: Sizes) -> Program:
    """Build a layer and load drawn weights."""
    return build(size.d_model, size.heads).load(layer_state(draw, size.d_model))


def two_sides(draw: Draw) -> Program:
    """Let one side look at the whole other side."""
    size = sizes(draw)
    return layer(draw, size).call(*sides(draw, size))


def padded(draw: Draw, equal: bool = False) -> Program:
    """Hide padding, which holds loud numbers; `equal` makes both sides equally long."""
    size = sizes(draw)
    size = replace(size, target=size.source) if equal else size
    x, memory = sides(draw, size)
    mask = padding(draw, size)
    memory[mask] = LOUD
    return layer(draw, size).call(x, memory, mask)


def one_query(draw: Draw) -> Program:
    """Let one token look, as a decoder does at every step."""
    size = replace(sizes(draw), target=1)
    return layer(draw, size).call(*sides(draw, size), memory_mask=padding(draw, size))


def nothing_to_see(draw: Draw) -> Program:
    """Hide the whole memory of one row; look at outputs, weights and gradients."""
    size = replace(sizes(draw), batch=2, source=6)
    x, memory = sides(draw, size)
    mask = padding(draw, size)
    mask[0], mask[1] = True, False
    names = ("w_q.weight", "w_v.bias", "w_o.weight")
    return layer(draw, size).call(x, memory, mask).gradients(x, memory, mask, wrt=(0, 1, *names))


def another_memory(draw: Draw) -> Program:
    """Call one layer with two memories of the same size, first with a mask: it must not remember."""
    size = replace(sizes(draw), heads=6)
    x, memory = sides(draw, size)
    return layer(draw, size).call(x, memory, padding(draw, size)).call(*sides(draw, size))


def float_mask(draw: Draw) -> Program:
    """Give a mask of zeros and ones."""
    size = sizes(draw)
    x, memory = sides(draw, size)
    return layer(draw, size).call(x, memory, padding(draw, size).to(x.dtype))


def indivisible(draw: Draw) -> Program:
    """Ask for heads that do not divide the width."""
    size = sizes(draw)
    return build(size.d_model + 1, size.heads)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=cross_attention.CrossAttention,
    returns=("output", "weights"),
    properties=[weights_are_shares],
    forbids=[
        *library_calls.ATTENTION_LAYER,
        "course_lib.cross_attention.CrossAttention",
        "course_lib.cross_attention.cache_memory",
        "course_lib.cross_attention.attend",
    ],
    forbids_because="this exercise asks you to build the layer from projections and heads",
    cases=[
        Case("both sides differ in length", two_sides),
        Case("padding in the memory", padded),
        Case("padding, and both sides equally long", lambda draw: padded(draw, equal=True), hidden=True),
        Case("one query", one_query, hidden=True),
        Case("a memory that is all padding", nothing_to_see, hidden=True),
        Case("another memory in the second call, 6 heads", another_memory, hidden=True),
        Case("a mask of zeros and ones", float_mask, hidden=True, judge=refuses_numbers),
        Case("a width that the heads do not divide", indivisible, hidden=True),
        Case("float64", padded, hidden=True, dtype="float64"),
    ],
)
