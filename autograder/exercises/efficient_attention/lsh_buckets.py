"""Check `lsh_buckets`: the nearest of a set of random directions and their opposites."""

from functools import partial

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.program import Program, Run, call
from course_lib.efficient import lsh


def drawn(draw: Draw, *leading: int, directions: int | None = None, tokens: int | None = None) -> Program:
    """Draw enough tokens that every bucket is likely to be met."""
    d, half = draw.sizes(2, low=3, high=6)
    length = tokens or draw.integer(40, 50)
    return call(draw.normal(*leading, length, d), draw.normal(d, directions or half))


def with_opposites(draw: Draw) -> Program:
    """Give vectors and their opposites."""
    d, half = draw.sizes(2, low=3, high=6)
    x = draw.normal(draw.integer(20, 25), d)
    return call(torch.cat([x, -x]), draw.normal(d, half))


def of_many_lengths(draw: Draw) -> Program:
    """Give the same directions at several lengths."""
    d, half = draw.sizes(2, low=3, high=6)
    x = draw.normal(9, d)
    return call(torch.cat([0.01 * x, x, 50 * x]), draw.normal(d, half))


def leaning(draw: Draw) -> Program:
    """Give vectors that share a mean, so that their own scores differ from centered ones."""
    d, half = draw.sizes(2, low=3, high=6)
    return call(draw.normal(45, d, mean=1.0), draw.normal(d, half))


def in_range(program: Program, found: Run) -> str | None:
    """Say when a bucket does not exist."""
    buckets, count = found.outcomes[0], 2 * program.steps[0].args[1].shape[-1]
    if buckets.dtype.is_floating_point or not buckets.numel():
        return None
    low, high = int(buckets.min()), int(buckets.max())
    if low >= 0 and high < count:
        return None
    return f"there are {count} buckets, numbered from 0 to {count - 1}, but yours run from {low} to {high}"


def buckets_are_int64(program: Program, found: Run) -> str | None:
    """Say when the numbers of the buckets have another type."""
    dtype = found.outcomes[0].dtype
    if dtype == torch.int64:
        return None
    name = str(dtype).removeprefix("torch.")
    return f"your buckets have the dtype {name}, but places are int64, as `argmax` gives them and `gather` wants them"


case = partial(Case, limit=buckets_are_int64)

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=lsh.lsh_buckets,
    returns=("the buckets",),
    properties=[in_range],
    cases=[
        case("one sequence", drawn),
        case("vectors and their opposites", with_opposites),
        case("a batch of heads", lambda draw: drawn(draw, 2, 3, tokens=11), hidden=True),
        case("the same directions at three lengths", of_many_lengths, hidden=True),
        case("vectors around one point", leaning, hidden=True),
        case("float64", drawn, hidden=True, dtype="float64"),
        case("two buckets", lambda draw: drawn(draw, directions=1), hidden=True),
    ],
)


def _rotated(x, rotations):
    return x @ rotations


@exercise.misconception("""
    You use half of the buckets: the opposites of the directions are missing. A vector that points away from all of
    them lands at the least bad one. Join x R and −x R before the argmax.
""")
def opposites_forgotten(x, rotations):
    return _rotated(x, rotations).argmax(-1)


@exercise.misconception("""
    Opposite vectors share a bucket here: you take the largest **absolute** projection. Attention treats x and −x as
    differently as can be. Keep the sign.
""")
def absolute_values(x, rotations):
    return _rotated(x, rotations).abs().argmax(-1)


@exercise.misconception("""
    Your buckets are those of [−x R; x R], with the opposites first, which is also what an argmin in place of the argmax
    gives. The clusters are the same and the numbers differ; the course follows the paper: argmax [x R; −x R].
""")
def opposites_first(x, rotations):
    rotated = _rotated(x, rotations)
    return torch.cat([-rotated, rotated], -1).argmax(-1)


@exercise.misconception("""
    Each direction and its opposite stand side by side in your list. The clusters are the same and the numbers differ:
    in the paper's [x R; −x R] all directions come first, then all opposites.
""")
def interleaved(x, rotations):
    rotated = _rotated(x, rotations)
    return torch.stack([rotated, -rotated], -1).flatten(-2).argmax(-1)


@exercise.misconception("""
    You read the signs of the projections as a binary number. That is another hash, of 2 to the number of directions
    buckets; Reformer takes the one direction, or opposite, that is nearest.
""")
def sign_bits(x, rotations):
    bits = (_rotated(x, rotations) > 0).long()
    return (bits * 2 ** torch.arange(bits.shape[-1])).sum(-1)


@exercise.misconception("""
    Your argmax runs over the tokens: it finds which token is nearest to each direction. Each token is asked for its
    bucket, so the argmax runs over the last axis, the directions.
""")
def over_the_tokens(x, rotations):
    rotated = _rotated(x, rotations)
    return torch.cat([rotated, -rotated], -1).argmax(-2)


@exercise.misconception("""
    You join x R and −x R along the tokens, so there are twice as many tokens and half as many buckets. The opposites
    are further **directions**: the last axis.
""")
def joined_along_the_tokens(x, rotations):
    rotated = _rotated(x, rotations)
    return torch.cat([rotated, -rotated], -2).argmax(-1)


@exercise.misconception("""
    Your bucket is the nearest direction by distance, |x − r|. That depends on how long x and the directions are; the
    hash is angular and looks at products alone.
""")
def by_distance(x, rotations):
    directions = torch.cat([rotations, -rotations], -1)
    return (x.unsqueeze(-1) - directions).square().sum(-2).argmin(-1)


@exercise.misconception("""
    You bring the directions to length 1 first. That is sensible too, but it is not what is written: the argmax of
    [x R; −x R] takes R as it is drawn, so a longer direction wins more often.
""")
def directions_normalized(x, rotations):
    rotated = x @ torch.nn.functional.normalize(rotations, dim=0)
    return torch.cat([rotated, -rotated], -1).argmax(-1)


@exercise.misconception("""
    Your buckets are floats. A bucket is a number to count and to sort by: int64, as `argmax` gives it.
""")
def floats_returned(x, rotations):
    return lsh.lsh_buckets(x, rotations).to(x.dtype)


@exercise.misconception("""
    You return the projection of the winner. Asked for is **which** direction won, its index.
""")
def largest_projection(x, rotations):
    rotated = _rotated(x, rotations)
    return torch.cat([rotated, -rotated], -1).amax(-1)


@exercise.misconception("""
    You subtract the mean over the tokens first. Then a token's bucket depends on who else is in the text. Each token
    is hashed by itself.
""")
def centered_first(x, rotations):
    return lsh.lsh_buckets(x - x.mean(-2, keepdim=True), rotations)


@exercise.misconception("""
    The buckets are right, as int32. Whoever sorts tokens by them uses them as places next, and PyTorch's `gather` wants
    int64, which `argmax` gives by itself.
""")
def smaller_numbers(x, rotations):
    return lsh.lsh_buckets(x, rotations).int()


@exercise.alternative
def with_joined_directions(x, rotations):
    return (x @ torch.cat([rotations, -rotations], dim=1)).argmax(dim=-1)


@exercise.alternative
def by_the_largest_absolute_value_and_its_sign(x, rotations):
    rotated = torch.einsum("...d,dh->...h", x, rotations)
    index = rotated.abs().argmax(-1)
    chosen = rotated.gather(-1, index.unsqueeze(-1)).squeeze(-1)
    return torch.where(chosen < 0, index + rotations.shape[1], index)


@exercise.alternative
def by_topk(x, rotations):
    rotated = torch.matmul(x, rotations)
    return torch.cat((rotated, -rotated), -1).topk(1, dim=-1).indices.squeeze(-1)


@exercise.alternative
def token_by_token(x, rotations):
    rows = [torch.cat([row @ rotations, -(row @ rotations)]).argmax() for row in x.reshape(-1, x.shape[-1])]
    return torch.stack(rows).reshape(x.shape[:-1])


@exercise.alternative
def unit_vectors(x, rotations):
    rotated = torch.nn.functional.normalize(x, dim=-1) @ rotations
    return torch.max(torch.cat([rotated, -rotated], -1), dim=-1).indices
