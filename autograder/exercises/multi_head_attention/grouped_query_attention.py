"""Check `grouped_query_attention`: many query heads over few key and value heads."""

import math

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.multi_head_attention import CHAPTER
from autograder.program import Program, call
from course_lib import grouped_query
from course_lib.tensor_attention import tensor_attention

HEADS = 6


def drawn(draw: Draw, groups: int, heads: int = HEADS) -> Program:
    """Draw queries, and keys and values with fewer heads."""
    batch, sequence, d_head = (int(size) for size in draw.random.permutation([4, 5, 7]))
    key_shape = (batch, groups, sequence, d_head)
    return call(draw.normal(batch, heads, sequence, d_head), draw.normal(*key_shape), draw.normal(*key_shape))


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=grouped_query.grouped_query_attention,
    returns=("the output",),
    forbids=["torch.nn.functional.scaled_dot_product_attention"],
    forbids_because=(
        "it decides by itself which query heads share a key head, and that is what this exercise asks; "
        "course_lib.tensor_attention is yours to use"
    ),
    cases=[
        Case("6 query heads, 3 key heads", lambda draw: drawn(draw, 3)),
        Case("6 query heads, 2 key heads", lambda draw: drawn(draw, 2)),
        Case("one key head for all", lambda draw: drawn(draw, 1), hidden=True),
        Case("a key head for each query head", lambda draw: drawn(draw, HEADS), hidden=True),
        Case("4 key heads for 6 query heads", lambda draw: drawn(draw, 4), hidden=True),
        Case("8 query heads, 4 key heads", lambda draw: drawn(draw, 4, heads=8), hidden=True),
        Case("float64", lambda draw: drawn(draw, 2), hidden=True, dtype="float64"),
    ],
)


def _share(query, key):
    if query.shape[1] % key.shape[1]:
        raise ValueError("heads must be a multiple of groups")
    return query.shape[1] // key.shape[1]


@exercise.misconception("""
    Your query heads take turns: head 0 reads key head 0, head 1 reads key head 1, and so on from the start
    again (0, 1, 0, 1, …). Consecutive query heads should share one: 0, 0, 1, 1, … `repeat` lays whole copies
    one behind the other; which function repeats each head on the spot?
""")
def heads_take_turns(query, key, value):
    share = _share(query, key)
    return tensor_attention(query, key.repeat(1, share, 1, 1), value.repeat(1, share, 1, 1))[0]


@exercise.misconception("""
    Keys are shared by consecutive query heads, good, but the values go round in turns (0, 1, 0, 1, …). A
    query head must fetch from the very head whose keys it compared: repeat both in the same way.
""")
def values_take_turns(query, key, value):
    share = _share(query, key)
    return tensor_attention(query, key.repeat_interleave(share, 1), value.repeat(1, share, 1, 1))[0]


@exercise.misconception("""
    All your query heads read key head 0: replace the other key heads by zeros and nothing changes. That is
    right for multi-query attention, which has one; here each group has its own.
""")
def first_key_head_only(query, key, value):
    _share(query, key)
    return tensor_attention(query, key[:, :1], value[:, :1])[0]


@exercise.misconception("""
    All heads of a group give the same output: you averaged their queries to match the number of key heads.
    Only keys and values are shared; every query head still asks its own question.
""")
def queries_averaged(query, key, value):
    share = _share(query, key)
    mean = query.unflatten(1, (-1, share)).mean(2)
    return tensor_attention(mean, key, value)[0].repeat_interleave(share, 1)


@exercise.misconception("""
    Your result has only as many heads as there are key heads: the query heads that share one have been
    merged. Sharing saves keys and values; the output still has every query head.
""")
def one_output_for_each_group(query, key, value):
    mean = query.unflatten(1, (-1, _share(query, key))).mean(2)
    return tensor_attention(mean, key, value)[0]


@exercise.misconception("""
    You average the key heads (and the value heads) into one and show it to every query head. The groups
    differ because they look for different things; an average of keys looks for none of them.
""")
def key_heads_averaged(query, key, value):
    _share(query, key)
    return tensor_attention(query, key.mean(1, keepdim=True), value.mean(1, keepdim=True))[0]


@exercise.misconception("""
    Your scores are not divided by √d_head. Sharing keys changes nothing about the scale: a score still sums
    over the d_head features of one head.
""")
def no_scale(query, key, value):
    return grouped_query.grouped_query_attention(query * math.sqrt(query.shape[-1]), key, value)


@exercise.misconception("""
    6 query heads cannot share 4 key heads evenly, and your code goes on all the same. Raise a `ValueError`
    when the number of query heads is not a multiple of the number of key heads.
""")
def uneven_groups_accepted(query, key, value):
    heads, groups = query.shape[1], key.shape[1]
    reads = torch.arange(heads) * groups // heads
    return tensor_attention(query, key[:, reads], value[:, reads])[0]


@exercise.misconception("""
    You return the weights too. Here the output alone is asked for.
""")
def weights_returned_as_well(query, key, value):
    share = _share(query, key)
    return tensor_attention(query, key.repeat_interleave(share, 1), value.repeat_interleave(share, 1))


@exercise.alternative
def repeated_on_the_spot(query, key, value):
    share = _share(query, key)
    scores = query @ key.repeat_interleave(share, dim=1).mT / query.shape[-1] ** 0.5
    return scores.softmax(-1) @ value.repeat_interleave(share, dim=1)


@exercise.alternative
def indexed(query, key, value):
    reads = torch.arange(query.shape[1]) // _share(query, key)
    return tensor_attention(query, key[:, reads], value[:, reads])[0]


@exercise.alternative
def expanded_then_reshaped(query, key, value):
    batch, groups, sequence, d_head = key.shape
    wide = (batch, groups, _share(query, key), sequence, d_head)
    key, value = (x[:, :, None].expand(wide).reshape(batch, -1, sequence, d_head) for x in (key, value))
    return tensor_attention(query, key, value)[0]


@exercise.alternative
def by_einsum(query, key, value):
    grouped = query.unflatten(1, (key.shape[1], _share(query, key)))
    weights = (torch.einsum("bgrqd,bgkd->bgrqk", grouped, key) / math.sqrt(query.shape[-1])).softmax(-1)
    return torch.einsum("bgrqk,bgkd->bgrqd", weights, value).flatten(1, 2)


@exercise.alternative
def one_head_at_a_time(query, key, value):
    share = _share(query, key)
    found = [
        tensor_attention(query[:, head], key[:, head // share], value[:, head // share])[0]
        for head in range(query.shape[1])
    ]
    return torch.stack(found, 1)
