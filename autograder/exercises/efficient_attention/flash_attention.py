"""Check `flash_attention`: exact attention in tiles, and no table of all pairs anywhere."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises import library_calls
from autograder.exercises.efficient_attention import CHAPTER
from autograder.exercises.efficient_attention.budget import no_square
from autograder.exercises.efficient_attention.tiling import Tiling
from autograder.program import Program, call
from course_lib.efficient import flash
from course_lib.masks import causal_mask
from course_lib.tensor_attention import tensor_attention

SHARP = 3.0  # of the queries: the largest score then rises several times on the way
HUGE = 400.0  # of the queries: exp of such scores overflows in float32


def tensors(draw: Draw, n_q: int, n_k: int, scale: float = SHARP, leading: tuple[int, ...] | None = None) -> list:
    """Draw queries, keys and values for a batch of heads, all sizes different.

    The features of all problems together, 2 · 3 · 5 at most, stay below the lengths at which tables are counted, so
    that a copy of the keys is no table in any order of its axes.
    """
    (batch, heads), (d_k, d_v) = draw.sizes(2, low=2, high=3), draw.sizes(2, low=4, high=5)
    leading = (batch, heads) if leading is None else leading
    return [
        draw.normal(*leading, n_q, d_k, scale=scale),
        draw.normal(*leading, n_k, d_k),
        draw.normal(*leading, n_k, d_v, mean=0.5),
    ]


def even_tiles(draw: Draw) -> Program:
    """Give a length that the tiles divide."""
    block_size = draw.integer(8, 9)
    length = 4 * block_size
    return call(*tensors(draw, length, length), block_size).counting()


def ragged_tiles(draw: Draw, causal: bool | None = None, **options) -> Program:
    """Give a length that the tiles do not divide."""
    block_size = draw.integer(8, 9)
    length = 4 * block_size + draw.integer(1, block_size - 1)
    given = (*tensors(draw, length, length, **options), block_size)
    return (call(*given) if causal is None else call(*given, causal)).counting()


def other_lengths(draw: Draw, n_q: int, n_k: int, block_size: int, causal: bool) -> Program:
    """Give more keys than queries, or fewer."""
    return call(*tensors(draw, n_q, n_k), block_size, causal=causal)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=flash.flash_attention,
    returns=("the output",),
    forbids=[
        *library_calls.ATTENTION,
        "course_lib.efficient.flash.flash_attention_with_lse",
    ],
    forbids_because="this exercise asks you to sweep over the tiles yourself",
    cases=[
        Case("tiles that fit", even_tiles, limit=no_square),
        Case("a ragged last tile", ragged_tiles, limit=no_square),
        Case("causal", lambda draw: ragged_tiles(draw, causal=True), limit=no_square),
        Case("scores in the thousands", lambda draw: ragged_tiles(draw, scale=HUGE), hidden=True, limit=no_square),
        Case("float64", ragged_tiles, hidden=True, dtype="float64", limit=no_square),
        Case("causal in float64", lambda draw: ragged_tiles(draw, True), hidden=True, dtype="float64", limit=no_square),
        Case("without a batch", lambda draw: ragged_tiles(draw, leading=()), hidden=True, limit=no_square),
        Case("more keys than queries", lambda draw: other_lengths(draw, 7, 19, 4, causal=False), hidden=True),
        Case("causal over a cache", lambda draw: other_lengths(draw, 6, 17, 4, causal=True), hidden=True),
        Case("causal, more queries than keys", lambda draw: other_lengths(draw, 17, 11, 4, causal=True), hidden=True),
        Case("one tile holds all", lambda draw: other_lengths(draw, 5, 6, 16, causal=False), hidden=True),
        Case("tiles of one key", lambda draw: other_lengths(draw, 5, 6, 1, causal=True), hidden=True),
    ],
)


@exercise.misconception("""
    The whole table of scores stands in memory at once, before any softmax. That is what the tiles are there to avoid:
    keep a running maximum, a running sum and a running output for each query, and let go of each tile's scores
    before the next one.
""")
def whole_table(query, key, value, block_size, causal=False):
    mask = causal_mask(query.shape[-2], key.shape[-2]) if causal else None
    return tensor_attention(query, key, value, mask)[0]


@exercise.misconception("""
    Your output goes wrong from the tile on in which the largest score rises. Old sums were taken relative to the old
    maximum, which was smaller, so they must **shrink**: is exp(new − old) below 1 or above it?
""")
def rescaled_the_wrong_way(query, key, value, block_size, causal=False):
    return Tiling(inverse=True).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    You bring the running sum to the new maximum, but not the running output. Both were taken relative to the old
    maximum. Give scores that only fall from tile to tile: then it works, and that is the hint.
""")
def output_not_rescaled(query, key, value, block_size, causal=False):
    return Tiling(rescale_output=False).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    You bring the running output to the new maximum, but not the running sum by which you divide at the end. Let all
    values be 1: every output should be 1.
""")
def sum_not_rescaled(query, key, value, block_size, causal=False):
    return Tiling(rescale_total=False).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    Each of your tiles subtracts its own maximum, and the sums of different tiles are then added as they are. They are
    relative to different numbers, like prices in two currencies. What factor brings an old sum to the new maximum?
""")
def nothing_rescaled(query, key, value, block_size, causal=False):
    return Tiling(rescale_output=False, rescale_total=False).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    Each tile's result is a finished softmax here, and the results are averaged. A tile with the best key then counts
    no more than one without. How much of the whole mass does a tile hold?
""")
def mean_of_the_tiles(query, key, value, block_size, causal=False):
    return Tiling(mean=True).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    Your running output is never divided by the running sum. Let all values be 1: the output should be 1 and shows the
    sum.
""")
def never_divided(query, key, value, block_size, causal=False):
    return Tiling(divide=False).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    The last keys have no influence: your loop runs over the whole tiles only. When the length is not a multiple of
    `block_size`, a smaller tile is left at the end. Change the last value and see whether any output moves.
""")
def ragged_keys_dropped(query, key, value, block_size, causal=False):
    return Tiling(drop_ragged=True).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    You fill the last tile up with zeros and let them take part. A key of zeros has the score 0, not −∞, and takes its
    share of the softmax. Let all values be 1: some outputs will be smaller.
""")
def zeros_take_part(query, key, value, block_size, causal=False):
    return Tiling(zeros=True).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    With `causal=True` your result is the same as without. Change the last key and value: only the last query may
    notice.
""")
def causal_ignored(query, key, value, block_size, causal=False):
    return flash.flash_attention(query, key, value, block_size)


@exercise.misconception("""
    You compare places inside the tile, but a query and a key also stand in **different** tiles. A key in the tile
    after is later, whatever its place inside. Add the tiles' starts before you compare.
""")
def places_inside_the_tile(query, key, value, block_size, causal=False):
    return Tiling(local_places=True).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    You decide tile by tile: later tiles are left out, and the tile on the diagonal is seen whole. So a query sees
    up to `block_size` − 1 keys of its future. Inside that tile the places decide.
""")
def whole_tile_on_the_diagonal(query, key, value, block_size, causal=False):
    return Tiling(whole_diagonal=True).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    Your causal queries do not see themselves: the comparison leaves the diagonal out, and the first query sees
    nothing at all. A token may look at itself.
""")
def diagonal_hidden(query, key, value, block_size, causal=False):
    return Tiling(shift=-1).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    With as many queries as keys your causal form is right. With other numbers it counts both from the first one, but
    the last query stands beside the last key: query i is at place i + n_k − n_q.
""")
def counted_from_the_first_key(query, key, value, block_size, causal=False):
    return Tiling(top_left=True).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    A query from which every key is hidden has NaN here: its largest score is −∞, and −∞ − (−∞) is NaN, or its sum is 0
    and 0 / 0 is NaN. It sees nothing and should return 0. Which of the two happens in your code, and what could be
    subtracted, or divided by, in its place?
""")
def nan_where_nothing_is_seen(query, key, value, block_size, causal=False):
    return Tiling(guard=False).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    Your scores are not divided by √d_k. Tiles change how attention is calculated, not what: the formula is still
    softmax(query keyᵀ / √d_k) value.
""")
def no_scale(query, key, value, block_size, causal=False):
    return flash.flash_attention(query * query.shape[-1] ** 0.5, key, value, block_size, causal)


@exercise.misconception("""
    Right for usual scores; in the thousands, `exp` overflows. Your tiles add up exp(score) with no maximum taken
    out. The running maximum is there for that.
""")
def no_maximum_subtracted(query, key, value, block_size, causal=False):
    return Tiling(maximum=False).attend(query, key, value, block_size, causal)


@exercise.misconception("""
    Each tile of queries meets only the tile of keys beside it, so tokens of different tiles never see each other. That
    is block-diagonal attention. A tile of queries has to meet **every** tile of keys, one after another.
""")
def own_tile_alone(query, key, value, block_size, causal=False):
    return Tiling(own_tile=True).attend(query, key, value, block_size, causal)


@exercise.alternative
def tiles_of_keys_alone(query, key, value, block_size, causal=False):
    return Tiling().attend(query, key, value, block_size, causal)


@exercise.alternative
def divided_after_every_tile(query, key, value, block_size, causal=False):
    n_q, n_k = query.shape[-2], key.shape[-2]
    out = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype)
    lse = torch.full(query.shape[:-1], -torch.inf, dtype=query.dtype)
    for start in range(0, n_k, block_size):
        scores = query @ key[..., start : start + block_size, :].mT / query.shape[-1] ** 0.5
        if causal:
            places = torch.arange(start, min(start + block_size, n_k))
            scores = torch.where(places <= torch.arange(n_q)[:, None] + n_k - n_q, scores, -torch.inf)
        tile = scores.softmax(-1).nan_to_num(0) @ value[..., start : start + block_size, :]
        out, lse = flash.merge_partial_attention(out, lse, tile, scores.logsumexp(-1))
    return out


@exercise.alternative
def one_query_at_a_time(query, key, value, block_size, causal=False):
    n_q, n_k = query.shape[-2], key.shape[-2]
    rows = []
    for place in range(n_q):
        seen = max(0, min(n_k, place + 1 + n_k - n_q)) if causal else n_k
        scores = torch.einsum("...d,...kd->...k", query[..., place, :], key[..., :seen, :]) / query.shape[-1] ** 0.5
        rows.append(torch.einsum("...k,...kd->...d", scores.softmax(-1), value[..., :seen, :]))
    return torch.stack(rows, dim=-2)


@exercise.alternative
def tiles_both_ways_for_one_head_at_a_time(query, key, value, block_size, causal=False):
    queries, keys, values = (tensor.reshape(-1, *tensor.shape[-2:]) for tensor in (query, key, value))
    heads = zip(queries, keys, values, strict=True)
    done = [flash.flash_attention(q, k, v, block_size, causal) for q, k, v in heads]
    return torch.stack(done).reshape(*query.shape[:-1], value.shape[-1])
