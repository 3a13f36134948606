"""Check `local_attention`: what the masked form gives, without a table of all pairs."""

import math

import torch
import torch.nn.functional as F

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.exercises.efficient_attention.budget import no_square
from autograder.program import Program, call
from course_lib.efficient import local
from course_lib.efficient.sparse import sliding_window_mask
from course_lib.tensor_attention import tensor_attention


def tensors(draw: Draw, length: int, *leading: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw queries, keys and values; values have a width of their own."""
    return (
        draw.normal(*leading, length, 3),
        draw.normal(*leading, length, 3, scale=1.5),
        draw.normal(*leading, length, 2, mean=1.0),
    )


def ragged(draw: Draw) -> Program:
    """Draw heads of a sequence that the window does not divide; what is allocated is counted."""
    window = draw.integer(4, 6)
    return call(*tensors(draw, 12 * window + draw.integer(1, window - 1), 2, 3), window).counting()


def whole_windows(draw: Draw) -> Program:
    """Draw a sequence that the window divides."""
    window = draw.integer(3, 5)
    return call(*tensors(draw, 14 * window, 2), window).counting()


def short(draw: Draw) -> Program:
    """Draw a window longer than the sequence; here the table of all pairs is all there is to compute."""
    length = draw.integer(3, 6)
    return call(*tensors(draw, length, 2), length + draw.integer(1, 3))


def gradients(draw: Draw) -> Program:
    """Ask for the gradients of all three tensors."""
    return Program().gradients(*tensors(draw, draw.integer(9, 13), 2), 4, wrt=(0, 1, 2), weighted=True)


def loud(draw: Draw) -> Program:
    """Draw scores in the hundreds."""
    query, key, value = tensors(draw, 47, 2)
    return call(30 * query, 30 * key, value, 5).counting()


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=local.local_attention,
    returns=("the output",),
    cases=[
        Case("heads of a ragged sequence", ragged, limit=no_square),
        Case("a whole number of windows", whole_windows, limit=no_square),
        Case("a window longer than the sequence", short, hidden=True),
        Case("a window of one", lambda draw: call(*tensors(draw, 41, 2), 1).counting(), hidden=True, limit=no_square),
        Case(
            "one sequence, no batch", lambda draw: call(*tensors(draw, 53), 4).counting(), hidden=True, limit=no_square
        ),
        Case("scores in the hundreds", loud, hidden=True, limit=no_square),
        Case("gradients", gradients, hidden=True),
        Case("float64", ragged, hidden=True, dtype="float64", limit=no_square),
    ],
)


def _windowed(query, key, value, window, visible):
    """Attend block by block, where `visible` tells by places of query and key who may meet."""
    length, outputs = query.shape[-2], []
    for start in range(0, length, window):
        stop = min(start + window, length)
        first, last = max(0, start - 2 * window), min(length, stop + 2 * window)
        i, j = torch.arange(start, stop)[:, None], torch.arange(first, last)
        scores = query[..., start:stop, :] @ key[..., first:last, :].mT / math.sqrt(query.shape[-1])
        scores = scores.masked_fill(~visible(i, j), -math.inf)
        outputs.append(torch.softmax(scores, -1).nan_to_num() @ value[..., first:last, :])
    return torch.cat(outputs, -2)


def _near(i, j, window):
    return (j <= i) & (i - j < window)


@exercise.misconception("""
    Your result is right, and so is the mask, but the whole table of scores was computed before it was masked. The mask
    saves nothing: -inf takes as much room as any other number. Which keys can a block of queries see at most? Cut them
    out before you multiply.
""")
def masked_table(query, key, value, window):
    mask = sliding_window_mask(query.shape[-2], window)
    return tensor_attention(query, key, value, mask)[0]


@exercise.misconception("""
    No table of scores was computed, but a **mask** of all pairs was made. It has n² cells too. A block of queries needs
    only the part of the mask over its own keys, which you can tell from their places.
""")
def table_of_the_mask(query, key, value, window):
    mask, length, outputs = sliding_window_mask(query.shape[-2], window), query.shape[-2], []
    for start in range(0, length, window):
        rows, keys = slice(start, start + window), slice(max(0, start - window + 1), start + window)
        outputs.append(
            tensor_attention(query[..., rows, :], key[..., keys, :], value[..., keys, :], mask[rows, keys])[0]
        )
    return torch.cat(outputs, -2)


@exercise.misconception("""
    Each of your blocks looks at itself alone: the first token of a block sees nothing of the block before, although
    its window reaches back there. A token's window moves with it; where does the window of a block's **first** query
    begin?
""")
def blocks_that_never_meet(query, key, value, window):
    return _windowed(query, key, value, window, lambda i, j: (j <= i) & (i // window == j // window))


@exercise.misconception("""
    Your tokens see their own block and the whole block before: up to twice the window. The keys that you cut out are
    those of a whole block; for each single query some of them are too far away and have to be hidden.
""")
def whole_block_before(query, key, value, window):
    return _windowed(query, key, value, window, lambda i, j: (j <= i) & (i // window - j // window <= 1))


@exercise.misconception("""
    You cut out the right keys for each block, and then every query of the block looks at all of them: at later tokens
    of its own block too, and at keys before its own window. Cutting is for the block; inside it, places still decide.
""")
def nothing_hidden_inside_a_block(query, key, value, window):
    length, outputs = query.shape[-2], []
    for start in range(0, length, window):
        seen = slice(max(0, start - window + 1), start + window)
        rows = query[..., start : start + window, :]
        outputs.append(tensor_attention(rows, key[..., seen, :], value[..., seen, :])[0])
    return torch.cat(outputs, -2)


@exercise.misconception("""
    Your window is one key too wide. The token itself is one of the `window` keys: i - j < window.
""")
def one_too_wide(query, key, value, window):
    return _windowed(query, key, value, window, lambda i, j: _near(i, j, window + 1))


@exercise.misconception("""
    Your tokens do not see themselves: the window begins with the token before.
""")
def without_itself(query, key, value, window):
    return _windowed(query, key, value, window, lambda i, j: _near(i, j, window) & (i != j))


@exercise.misconception("""
    Your window looks ahead as well: tokens see the future. This one is causal.
""")
def both_sides(query, key, value, window):
    return _windowed(query, key, value, window, lambda i, j: (i - j).abs() < window)


@exercise.misconception("""
    You filled up the front with zero keys and let them take part. A zero key has the score 0, and exp(0) = 1, so the
    first tokens give a share of their attention to nothing. What was added has to be hidden like the future.
""")
def padding_takes_part(query, key, value, window):
    length = query.shape[-2]
    query, key, value = (F.pad(tensor, (0, 0, window - 1, 0)) for tensor in (query, key, value))
    output = _windowed(query, key, value, window, lambda i, j: _near(i, j, window))
    return output[..., window - 1 : window - 1 + length, :]


@exercise.misconception("""
    The scores are not divided by √d_k. Blocks change which scores are computed, not what a score is.
""")
def no_scale(query, key, value, window):
    return local.local_attention(query * math.sqrt(query.shape[-1]), key, value, window)


@exercise.misconception("""
    Your scores are divided by the root of the window. The sum in a score runs over the features, so it is √d_k,
    whatever the window.
""")
def scaled_by_the_window(query, key, value, window):
    return local.local_attention(query * math.sqrt(query.shape[-1] / window), key, value, window)


@exercise.misconception("""
    The last tokens are missing, or computed wrongly: a length that the window does not divide leaves a shorter block at
    the end.
""")
def last_block_dropped(query, key, value, window):
    whole = query.shape[-2] // window * window
    return local.local_attention(query[..., :whole, :], key[..., :whole, :], value[..., :whole, :], window)


@exercise.misconception("""
    You return a pair. This exercise returns the output alone: there is no table of weights to hand over, which is the
    point of it.
""")
def weights_returned_too(query, key, value, window):
    output = local.local_attention(query, key, value, window)
    return output, torch.ones_like(output)


@exercise.alternative
def chunks_with_the_one_before(query, key, value, window):
    length = query.shape[-2]
    missing = -length % window
    query, key, value = (F.pad(tensor, (0, 0, 0, missing)) for tensor in (query, key, value))
    chunks = query.shape[-2] // window
    query, key, value = (tensor.unflatten(-2, (chunks, window)) for tensor in (query, key, value))
    keys, values = (
        torch.cat([F.pad(tensor, (0, 0, 0, 0, 1, 0))[..., :-1, :, :], tensor], dim=-2) for tensor in (key, value)
    )
    scores = query @ keys.mT / math.sqrt(query.shape[-1])
    i, j = torch.arange(window)[:, None] + window, torch.arange(2 * window)
    hidden = ~_near(i, j, window) | ((torch.arange(chunks) == 0)[:, None, None] & (j < window))
    weights = torch.softmax(scores.masked_fill(hidden, -math.inf), -1)
    return (weights @ values).flatten(-3, -2)[..., :length, :]


@exercise.alternative
def one_offset_at_a_time(query, key, value, window):
    length = query.shape[-2]
    shifted_keys, shifted_values = [], []
    scores = []
    for offset in range(min(window, length)):
        keys = F.pad(key, (0, 0, offset, 0))[..., :length, :]
        shifted_values.append(F.pad(value, (0, 0, offset, 0))[..., :length, :])
        shifted_keys.append(keys)
        score = (query * keys).sum(-1) / query.shape[-1] ** 0.5
        scores.append(score.masked_fill(torch.arange(length) < offset, -math.inf))
    weights = torch.stack(scores, -1).softmax(-1)
    return sum(weights[..., offset, None] * values for offset, values in enumerate(shifted_values))


@exercise.alternative
def token_by_token(query, key, value, window):
    rows = []
    for i in range(query.shape[-2]):
        seen = slice(max(0, i - window + 1), i + 1)
        scores = query[..., i : i + 1, :] @ key[..., seen, :].mT / math.sqrt(query.shape[-1])
        rows.append(torch.softmax(scores, dim=-1) @ value[..., seen, :])
    return torch.cat(rows, dim=-2)


@exercise.alternative
def unfolded_windows(query, key, value, window):
    keys, values = (F.pad(tensor, (0, 0, window - 1, 0)).unfold(-2, window, 1) for tensor in (key, value))
    scores = torch.einsum("...id,...idw->...iw", query, keys) / math.sqrt(query.shape[-1])
    ahead_of_the_start = torch.arange(query.shape[-2])[:, None] + torch.arange(window) < window - 1
    weights = torch.softmax(scores.masked_fill(ahead_of_the_start, -math.inf), -1)
    return torch.einsum("...iw,...idw->...id", weights, values)


@exercise.alternative
def library_attention_on_each_block(query, key, value, window):
    outputs, length = [], query.shape[-2]
    for start in range(0, length, window):
        stop, first = min(start + window, length), max(0, start - window + 1)
        i, j = torch.arange(start, stop)[:, None], torch.arange(first, stop)
        part = (query[..., start:stop, :], key[..., first:stop, :], value[..., first:stop, :])
        outputs.append(F.scaled_dot_product_attention(*part, attn_mask=_near(i, j, window)))
    return torch.cat(outputs, dim=-2)


@exercise.alternative
def smaller_blocks(query, key, value, window):
    return _windowed(query, key, value, window, lambda i, j: _near(i, j, window))
