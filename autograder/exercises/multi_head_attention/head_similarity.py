"""Check `head_similarity`: how alike are the maps of two heads?"""

import math

import torch
import torch.nn.functional as F

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.multi_head_attention import CHAPTER
from autograder.exercises.multi_head_attention.sizes import sizes
from autograder.program import Program, Run, call
from course_lib import head_analysis

SHARP = 2.0  # scale of scores at which maps differ clearly from an even one
DIAGONAL_TOLERANCE = 1e-3  # coarse on purpose: it only picks the sentence, the values decide


def maps(draw: Draw) -> torch.Tensor:
    """Draw the maps of several heads; batch, heads, queries and keys all differ."""
    size = sizes(draw)
    return (draw.normal(size.batch, size.heads, size.query, size.key, scale=SHARP)).softmax(-1)


def causal_maps(draw: Draw) -> Program:
    """Hide the future in every map."""
    size = sizes(draw)
    scores = draw.normal(size.batch, size.heads, size.query, size.query, scale=SHARP)
    future = torch.ones(size.query, size.query, dtype=torch.bool).triu(1)
    return call(scores.masked_fill(future, -math.inf).softmax(-1))


def copied_head(draw: Draw) -> Program:
    """Make the last head a copy of the first."""
    weights = maps(draw)
    weights[:, -1] = weights[:, 0]
    return call(weights)


def uneven_rows(draw: Draw) -> Program:
    """Make the maps of one batch row sharp and those of the others nearly even, so that lengths differ."""
    weights = maps(draw)
    weights[1:] = weights[1:].pow(0.1)
    return call(weights / weights.sum(-1, keepdim=True))


def one_map_each(draw: Draw) -> Program:
    """Give a batch of one."""
    return call(maps(draw)[:1])


def ones_on_the_diagonal(program: Program, run: Run) -> str | None:
    """Say so when a head does not resemble itself fully."""
    diagonal = run.outcomes[0].double().diagonal()
    if torch.allclose(diagonal, torch.ones_like(diagonal), atol=DIAGONAL_TOLERANCE):
        return None
    return f"every head is like itself, so the diagonal should be 1, but yours starts with {diagonal[0]:.3g}"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=head_analysis.head_similarity,
    returns=("the similarity",),
    properties=[ones_on_the_diagonal],
    cases=[
        Case("3 heads, all sizes different", lambda draw: call(maps(draw))),
        Case("a head that copies another", copied_head),
        Case("sharp and even batch rows", uneven_rows, hidden=True),
        Case("causal maps", causal_maps, hidden=True),
        Case("a batch of one", one_map_each, hidden=True),
        Case("float64", lambda draw: call(maps(draw)), hidden=True, dtype="float64"),
    ],
)


def _cosines(maps):
    maps = F.normalize(maps, dim=-1)
    return maps @ maps.mT


@exercise.misconception("""
    You put the batch into the flattened maps, so that each head gives one long vector. Rows with sharp maps
    then count more than rows with even ones. Take the cosine for each batch row, then the mean over the
    batch.
""")
def batch_flattened_too(weights):
    return _cosines(weights.transpose(0, 1).flatten(1))


@exercise.misconception("""
    You average the maps over the batch first and compare the averages. Two heads that look at different
    places in every single example can have the same average. Compare within each example, then take the mean.
""")
def maps_averaged_first(weights):
    return _cosines(weights.mean(0).flatten(1))


@exercise.misconception("""
    You compare query by query and average those cosines. Here a whole map is one vector of n_q · n_k numbers:
    flatten the last two axes before you take the cosine.
""")
def query_by_query(weights):
    return _cosines(weights.transpose(1, 2)).mean((0, 1))


@exercise.misconception("""
    You compare how much attention each key gets in all and forget which query gave it. Heads that read the
    same keys for different queries then look equal. Flatten the whole map: queries and keys.
""")
def attention_received(weights):
    return _cosines(weights.sum(2)).mean(0)


@exercise.misconception("""
    Your diagonal is not 1: the products are not divided by the lengths of the maps. Without that, sharp maps
    seem more alike than even ones.
""")
def not_normalized(weights):
    maps = weights.flatten(2)
    return (maps @ maps.mT).mean(0)


@exercise.misconception("""
    You subtract each map's mean before you compare: that is a correlation, and for finding collapsed heads it
    is even the better number, as you will see below. This exercise asks for the plain cosine first.
""")
def centered(weights):
    maps = weights.flatten(2)
    return _cosines(maps - maps.mean(-1, keepdim=True)).mean(0)


@exercise.misconception("""
    You return a distance: 0 for a head and itself. A similarity is 1 there.
""")
def distance(weights):
    return 1 - head_analysis.head_similarity(weights)


@exercise.misconception("""
    You count how often two heads have the same favorite key. That throws away everything but the largest
    weight of each row; the cosine uses all of them.
""")
def same_favorite_key(weights):
    favorite = weights.argmax(-1)
    return (favorite[:, :, None] == favorite[:, None]).to(weights.dtype).mean((0, 3))


@exercise.misconception("""
    You add up over the batch: with three examples the diagonal is 3. Take the mean.
""")
def batch_added_up(weights):
    return head_analysis.head_similarity(weights) * len(weights)


@exercise.misconception("""
    You return one table for each example, (batch, heads, heads). Take the mean over the batch at the end.
""")
def one_table_for_each_example(weights):
    return _cosines(weights.flatten(2))


@exercise.alternative
def by_cosine_similarity(weights):
    maps = weights.flatten(2)
    return F.cosine_similarity(maps[:, :, None], maps[:, None], dim=-1).mean(0)


@exercise.alternative
def by_einsum(weights):
    products = torch.einsum("biqk,bjqk->bij", weights, weights)
    lengths = weights.square().sum((-1, -2)).sqrt()
    return (products / lengths[:, :, None] / lengths[:, None]).mean(0)


@exercise.alternative
def pair_by_pair(weights):
    heads = weights.shape[1]
    result = weights.new_zeros(heads, heads)
    for i in range(heads):
        for j in range(heads):
            rows = [F.cosine_similarity(row[i].reshape(-1), row[j].reshape(-1), dim=0) for row in weights]
            result[i, j] = torch.stack(rows).mean()
    return result
