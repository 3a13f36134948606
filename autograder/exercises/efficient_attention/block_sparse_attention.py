"""Check `block_sparse_attention`: a bug hunt. The documents' snippet, in which blocks never meet."""

import math

import torch
import torch.nn.functional as F

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.program import Program, Run, call
from course_lib.efficient import block_sparse
from course_lib.efficient.block_sparse import expand_block_mask
from course_lib.tensor_attention import tensor_attention


def layout(draw: Draw, blocks: int, with_empty_row: bool = False) -> torch.Tensor:
    """Draw a layout that is neither symmetric nor diagonal: block 0 sees itself, block 1 sees 0 and the last one."""
    mask = draw.mask(blocks, blocks)
    mask[0], mask[1], mask[-1, 0] = True, True, True
    mask[0, 0] = mask[1, 0] = mask[1, -1] = mask[-1, 1] = False
    if with_empty_row:
        mask[2] = True
    return mask


def tensors(draw: Draw, length: int, *leading: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw queries, keys and values; values have a width of their own."""
    return (
        draw.normal(*leading, length, 4),
        draw.normal(*leading, length, 4, scale=1.5),
        draw.normal(*leading, length, 3, mean=1.0),
    )


def drawn(draw: Draw, *leading: int, with_empty_row: bool = False) -> Program:
    """Draw a few blocks of a size that differs from their number."""
    blocks, size = (int(number) for number in draw.random.permutation([3, 5])) if not with_empty_row else (5, 3)
    return call(*tensors(draw, blocks * size, *leading), layout(draw, blocks, with_empty_row), size)


def as_many_blocks_as_tokens_in_one(draw: Draw) -> Program:
    """Draw 4 blocks of 4, where a mask that is laid over the wrong axes has the right shape."""
    return call(*tensors(draw, 16, 2), layout(draw, 4), 4)


def visible(draw: Draw) -> Program:
    """Draw a layout that hides nothing."""
    return call(*tensors(draw, 12, 2), torch.zeros(4, 4, dtype=torch.bool), 3)


def finite(program: Program, found: Run) -> str | None:
    """Give a sentence about outputs that are not numbers."""
    rows = found.outcomes[0].isnan().any(-1)
    if not rows.any():
        return None
    return f"{int(rows.sum())} of {rows.numel()} output tokens are NaN: their block sees no block of keys at all"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=block_sparse.block_sparse_attention,
    returns=("the output",),
    properties=[finite],
    cases=[
        Case("blocks that see other blocks", lambda draw: drawn(draw, 2)),
        Case("4 blocks of 4", as_many_blocks_as_tokens_in_one),
        Case("a block that sees nothing", lambda draw: drawn(draw, 2, with_empty_row=True), hidden=True),
        Case("heads", lambda draw: drawn(draw, 2, 3), hidden=True),
        Case("one sequence, no batch", lambda draw: drawn(draw), hidden=True),
        Case("nothing hidden", visible, hidden=True),
        Case("one block", lambda draw: call(*tensors(draw, 5, 2), torch.zeros(1, 1).bool(), 5), hidden=True),
        Case("float64", lambda draw: drawn(draw, 2), hidden=True, dtype="float64"),
    ],
)


def _dense(query, key, value, hidden):
    return tensor_attention(query, key, value, hidden)[0]


def _scores(query, key):
    return query @ key.mT / math.sqrt(query.shape[-1])


@exercise.misconception("""
    This is the snippet as it stands, and it stops at the first fault: the mask has a cell for each pair of **blocks**,
    and the scores of one block have cells for pairs of tokens. Right behind it another fault would stop it (what became
    of the values?). The others make no noise at all.
""")
def snippet_as_it_stands(query, key, value, block_mask, block_size):
    query_blocks = query.reshape(-1, block_size, query.size(-1))
    key_blocks = key.reshape(-1, block_size, key.size(-1))
    scores = torch.einsum("bqd,bkd->bqk", query_blocks, key_blocks)
    scores = scores.masked_fill(~block_mask, float("-inf"))
    return torch.matmul(F.softmax(scores, dim=-1), value)


@exercise.misconception("""
    Each block of queries meets its own block of keys and no other: change a key in another block that the mask shows,
    and nothing moves. `"bqd,bkd->bqk"` uses the same b for both. That is a block-**diagonal** pattern, in which
    information never crosses a border, however many layers you stack.
""")
def own_block_alone(query, key, value, block_mask, block_size):
    diagonal = ~torch.eye(len(block_mask), dtype=torch.bool)
    return _dense(query, key, value, expand_block_mask(diagonal, block_size))


@exercise.misconception("""
    Each block of queries still meets its own block of keys alone, and only if the mask's diagonal shows it. What lies
    off the diagonal of the mask has no effect.
""")
def diagonal_of_the_mask_alone(query, key, value, block_mask, block_size):
    hidden = block_mask | ~torch.eye(len(block_mask), dtype=torch.bool)
    return _dense(query, key, value, expand_block_mask(hidden, block_size))


@exercise.misconception("""
    The blocks meet as they should; the scores are not divided by √d_k. The snippet leaves that out, though the
    document's formulas of attention have it.
""")
def scale_left_out(query, key, value, block_mask, block_size):
    return block_sparse.block_sparse_attention(query * math.sqrt(query.shape[-1]), key, value, block_mask, block_size)


@exercise.misconception("""
    Your mask works the wrong way round: the visible blocks have no influence and the hidden ones do. In the snippet
    True shows (hence its `~`); here True hides, as everywhere in this course.
""")
def inversion_left(query, key, value, block_mask, block_size):
    return block_sparse.block_sparse_attention(query, key, value, ~block_mask, block_size)


@exercise.misconception("""
    A block of queries that sees nothing becomes NaN. In this course its output is 0. With random layouts such rows are
    no rarity: at a tenth of the blocks, a layout of 32 × 32 has one in two cases of three.
""")
def nan_left(query, key, value, block_mask, block_size):
    scores = _scores(query, key).masked_fill(expand_block_mask(block_mask, block_size), -math.inf)
    return torch.softmax(scores, dim=-1) @ value


@exercise.misconception("""
    The mask of blocks is laid side by side until it covers the table, so that its pattern repeats inside the blocks.
    Each **cell** of it stands for block_size × block_size pairs: which of `repeat` and `repeat_interleave` widens a
    cell?
""")
def pattern_repeated(query, key, value, block_mask, block_size):
    return _dense(query, key, value, block_mask.repeat(block_size, block_size))


@exercise.misconception("""
    Your layout is turned: rows of the mask are blocks of queries, columns are blocks of keys. A symmetric layout would
    have hidden that.
""")
def layout_turned(query, key, value, block_mask, block_size):
    return block_sparse.block_sparse_attention(query, key, value, block_mask.T.contiguous(), block_size)


@exercise.misconception("""
    Every visible block has a softmax of its own, and you add the results up: the weights of a query sum to the number
    of blocks that it sees. One softmax runs over all keys that a query sees, whatever their blocks.
""")
def one_softmax_per_block(query, key, value, block_mask, block_size):
    return _by_blocks(query, key, value, block_mask, block_size).sum(0)


@exercise.misconception("""
    Every visible block has a softmax of its own, and you average the results. A block of weak matches then counts as
    much as one of strong matches. One softmax runs over all keys that a query sees.
""")
def mean_over_blocks(query, key, value, block_mask, block_size):
    seen = (~block_mask).sum(-1).clamp(min=1).repeat_interleave(block_size)
    return _by_blocks(query, key, value, block_mask, block_size).sum(0) / seen[:, None]


def _by_blocks(query, key, value, block_mask, block_size):
    """Attend to each block of keys by itself; what is hidden gives 0."""
    parts = []
    for column in range(block_mask.shape[1]):
        alone = block_mask.clone()
        alone[:, torch.arange(block_mask.shape[1]) != column] = True
        parts.append(block_sparse.block_sparse_attention(query, key, value, alone, block_size))
    return torch.stack(parts)


@exercise.misconception("""
    Hidden blocks get the weight 0, but the visible ones no longer sum to 1: the softmax had paid for the hidden ones
    before you removed them.
""")
def hidden_after_the_softmax(query, key, value, block_mask, block_size):
    weights = torch.softmax(_scores(query, key), -1)
    return weights.masked_fill(expand_block_mask(block_mask, block_size), 0) @ value


@exercise.misconception("""
    Your mask has no effect: every query sees every key.
""")
def mask_ignored(query, key, value, block_mask, block_size):
    return _dense(query, key, value, torch.zeros_like(expand_block_mask(block_mask, block_size)))


@exercise.misconception("""
    Your result has an axis of blocks in it. Put the blocks together again: the output has the shape of the queries,
    with the width of the values.
""")
def blocks_left_apart(query, key, value, block_mask, block_size):
    output = block_sparse.block_sparse_attention(query, key, value, block_mask, block_size)
    return output.unflatten(-2, (len(block_mask), block_size))


@exercise.misconception("""
    Your scores are divided by the root of the block size. A score sums over features: √d_k.
""")
def scaled_by_the_block(query, key, value, block_mask, block_size):
    rescaled = query * math.sqrt(query.shape[-1] / block_size)
    return block_sparse.block_sparse_attention(rescaled, key, value, block_mask, block_size)


@exercise.alternative
def dense_under_the_spread_mask(query, key, value, block_mask, block_size):
    hidden = block_mask.repeat_interleave(block_size, 0).repeat_interleave(block_size, 1)
    weights = torch.softmax(_scores(query, key).masked_fill(hidden, -math.inf), dim=-1)
    return torch.where(hidden, 0, weights) @ value


@exercise.alternative
def spread_by_kronecker(query, key, value, block_mask, block_size):
    ones = torch.ones(block_size, block_size, dtype=torch.int)
    visible = torch.kron((~block_mask).int(), ones).bool()
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=visible)
    return output.masked_fill(~visible.any(-1, keepdim=True), 0)


@exercise.alternative
def all_pairs_of_blocks(query, key, value, block_mask, block_size):
    blocks = query.shape[-2] // block_size
    query, key, value = (tensor.unflatten(-2, (blocks, block_size)) for tensor in (query, key, value))
    scores = torch.einsum("...aqd,...ckd->...aqck", query, key) / math.sqrt(query.shape[-1])
    hidden = block_mask[:, None, :, None].expand(scores.shape[-4:])
    weights = scores.masked_fill(hidden, -math.inf).flatten(-2).softmax(-1).nan_to_num()
    output = torch.einsum("...aqck,...ckd->...aqd", weights.unflatten(-1, (blocks, block_size)), value)
    return output.flatten(-3, -2)


@exercise.alternative
def visible_blocks_joined(query, key, value, block_mask, block_size):
    rows = []
    for row in range(block_mask.shape[0]):
        mine = query[..., row * block_size : (row + 1) * block_size, :]
        seen = [column for column in range(block_mask.shape[1]) if not block_mask[row, column]]
        if not seen:
            rows.append(torch.zeros(*mine.shape[:-1], value.shape[-1], dtype=value.dtype))
            continue
        places = torch.cat([torch.arange(c * block_size, (c + 1) * block_size) for c in seen])
        weights = torch.softmax(_scores(mine, key[..., places, :]), dim=-1)
        rows.append(weights @ value[..., places, :])
    return torch.cat(rows, dim=-2)


@exercise.alternative
def running_softmax(query, key, value, block_mask, block_size):
    shape = (*query.shape[:-1], 1)
    peak, total = torch.full(shape, -1e30, dtype=query.dtype), torch.zeros(shape, dtype=query.dtype)
    output = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=value.dtype)
    for column in range(block_mask.shape[1]):
        here = slice(column * block_size, (column + 1) * block_size)
        hidden = block_mask[:, column].repeat_interleave(block_size)[:, None]
        scores = _scores(query, key[..., here, :]).masked_fill(hidden, -math.inf)
        higher = torch.maximum(peak, scores.amax(-1, keepdim=True))
        weights, old = torch.exp(scores - higher), torch.exp(peak - higher)
        total = old * total + weights.sum(-1, keepdim=True)
        output = old * output + weights @ value[..., here, :]
        peak = higher
    return output / torch.where(total == 0, 1, total)
