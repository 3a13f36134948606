"""Check `relative_position_bucket`: T5's buckets, exact nearby and shared far away."""

from __future__ import annotations

import math

import numpy as np
import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.positional_encoding import CHAPTER
from autograder.program import Program, Run, call
from course_lib import buckets

NUM_BUCKETS, MAX_DISTANCE = buckets.NUM_BUCKETS, buckets.MAX_DISTANCE
FARTHEST = 300
NEAR_A_LIMIT = 1e-3  # where rounding decides to which of two buckets a distance belongs


def unambiguous(distances: np.ndarray, bidirectional: bool, num_buckets: int, max_distance: int) -> np.ndarray:
    """Keep the distances whose bucket does not hang on the rounding of a logarithm."""
    per_direction = num_buckets // 2 if bidirectional else num_buckets
    exact = per_direction // 2
    growth = np.log(np.maximum(np.abs(distances), 1) / exact) / math.log(max_distance / exact)
    steps = growth * (per_direction - exact)
    decided_by_rounding = (np.abs(steps - np.round(steps)) < NEAR_A_LIMIT) & (np.abs(distances) > exact)
    return distances[~decided_by_rounding]


def table(draw: Draw, bidirectional: bool) -> Program:
    """Ask for the whole table of a short text, queries in rows."""
    n_q, n_k = draw.sizes(2, low=9, high=14)
    return call(draw.array(np.arange(n_k)[None, :] - np.arange(n_q)[:, None]), bidirectional)


def far(draw: Draw, bidirectional: bool, *sizes: int) -> Program:
    """Ask for distances near and far, on both sides and in no order."""
    drawn = draw.random.permutation(np.arange(-FARTHEST, FARTHEST + 1))
    kept = unambiguous(drawn, bidirectional, *(sizes or (NUM_BUCKETS, MAX_DISTANCE)))
    return call(draw.array(kept), bidirectional, *sizes)


def rows_of_a_table(program: Program, found: Run) -> str | None:
    """Look at the dtype, as values alone do not tell one kind of whole numbers from another."""
    dtype = found.outcomes[0].dtype
    return None if dtype == torch.int64 else f"expected the buckets to have the dtype torch.int64, but it is {dtype}"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=buckets.relative_position_bucket,
    returns=("the buckets",),
    cases=[
        Case("a short text, both directions", lambda draw: table(draw, True), limit=rows_of_a_table),
        Case("a short text, one direction", lambda draw: table(draw, False)),
        Case("far distances, both directions", lambda draw: far(draw, True)),
        Case("far distances, one direction", lambda draw: far(draw, False), hidden=True),
        Case("16 buckets up to 60, both directions", lambda draw: far(draw, True, 16, 60), hidden=True),
        Case("20 buckets up to 200, one direction", lambda draw: far(draw, False, 20, 200), hidden=True),
        Case("at the edges", lambda draw: call(draw.array([[-400, -129, -8], [0, 1, 400]]), True), hidden=True),
    ],
)


def _bucket(
    relative,
    bidirectional,
    num_buckets,
    max_distance,
    *,
    keys_after=torch.Tensor.relu,
    exact_share=2,
    clamp=True,
    group=torch.Tensor.floor,
    logarithm=True,
    from_exact=True,
    offset=True,
    halve=True,
):
    """Follow T5's rule with one of its steps replaced."""
    start = torch.zeros_like(relative)
    if bidirectional:
        if halve:
            num_buckets //= 2
        if offset:
            start = num_buckets * (relative > 0)
        distance = relative.abs()
    else:
        distance = keys_after(-relative)
    exact = num_buckets // exact_share
    ratio = distance.clamp(min=1).double() / exact
    span = max_distance / (exact if from_exact else 1)
    growth = ratio.log() / math.log(span) if logarithm else (ratio - 1) / (span - 1)
    shared = exact + group(growth * (num_buckets - exact)).long()
    if clamp:
        shared = shared.clamp(max=num_buckets - 1)
    return start + torch.where(distance < exact, distance, shared)


@exercise.misconception("""
    Your two directions have changed places. T5 takes key minus query: a key after its query has a positive relative
    position, and the second half of the buckets.
""")
def query_minus_key(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(-relative_position, bidirectional, num_buckets, max_distance)


@exercise.misconception("""
    Far distances run out of the buckets: yours give numbers at or above the number there is. Whatever lies at
    `max_distance` or beyond belongs into the last bucket of its direction.
""")
def no_last_bucket(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(relative_position, bidirectional, num_buckets, max_distance, clamp=False)


@exercise.misconception("""
    In both directions you use all buckets twice. Each direction has half of them: halve the number first, and only
    then decide how many distances are exact.
""")
def buckets_not_halved(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(relative_position, bidirectional, num_buckets, max_distance, halve=False)


@exercise.misconception("""
    A key three places after the query and one three places before it share a bucket. With `bidirectional=True` the
    keys after the query get the second half of the buckets.
""")
def directions_share_buckets(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(relative_position, bidirectional, num_buckets, max_distance, offset=False)


@exercise.misconception("""
    In one direction, keys after the query get buckets by their distance. They all belong into bucket 0: a mask hides
    them anyway, and no bucket is wasted on them.
""")
def future_keys_count(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(relative_position, bidirectional, num_buckets, max_distance, keys_after=torch.Tensor.abs)


@exercise.misconception("""
    Your far groups are all equally wide. They should grow with the distance, like the numbers on a logarithmic scale:
    whether a key is 100 or 110 tokens away matters less than whether it is 10 or 20.
""")
def groups_of_equal_width(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(relative_position, bidirectional, num_buckets, max_distance, logarithm=False)


@exercise.misconception("""
    Your far ranges are too wide, and the last buckets stay empty: both logarithms start from E, the number of exact
    distances. Put n = max_distance into the formula: the fraction should be 1.
""")
def span_from_one(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(relative_position, bidirectional, num_buckets, max_distance, from_exact=False)


@exercise.misconception("""
    You round to the nearest group. The groups are rounded down: the first one begins exactly where the exact distances
    end.
""")
def groups_rounded(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(relative_position, bidirectional, num_buckets, max_distance, group=torch.Tensor.round)


@exercise.misconception("""
    Too few distances have a bucket of their own. Of the buckets for one direction, half are exact.
""")
def a_quarter_exact(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(relative_position, bidirectional, num_buckets, max_distance, exact_share=4)


@exercise.misconception("""
    Every distance has a bucket of its own until they run out, and all others share the last. The second half of the
    buckets should be shared by growing ranges up to `max_distance`.
""")
def distances_clamped(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    per_direction = num_buckets // (2 if bidirectional else 1)
    distance = relative_position.abs() if bidirectional else (-relative_position).clamp(min=0)
    start = per_direction * (relative_position > 0) if bidirectional else 0
    return start + distance.clamp(max=per_direction - 1)


@exercise.misconception("""
    You answer for both directions, whatever `bidirectional` says. A decoder asks for one direction: all buckets for
    keys before the query, and bucket 0 for the rest.
""")
def always_both_directions(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(relative_position, True, num_buckets, max_distance)


@exercise.misconception("""
    The numbers 32 and 128 stand fixed in your code: other sizes change nothing. Use `num_buckets` and `max_distance`.
""")
def sizes_ignored(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(relative_position, bidirectional, NUM_BUCKETS, MAX_DISTANCE)


@exercise.misconception("""
    Your buckets are floats. A bucket is a row of a table: return int64.
""")
def buckets_as_floats(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(relative_position, bidirectional, num_buckets, max_distance).float()


@exercise.misconception("""
    Your buckets are int32. The contract says int64, which is what `.long()` gives and what T5's own code uses.
""")
def buckets_in_int32(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    return _bucket(relative_position, bidirectional, num_buckets, max_distance).int()


@exercise.alternative
def as_in_most_libraries(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    result = torch.zeros_like(relative_position)
    if bidirectional:
        num_buckets //= 2
        result += (relative_position > 0).to(torch.long) * num_buckets
        relative_position = torch.abs(relative_position)
    else:
        relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
    exact = num_buckets // 2
    large = exact + (
        torch.log(relative_position.float() / exact) / math.log(max_distance / exact) * (num_buckets - exact)
    ).to(torch.long)
    large = torch.min(large, torch.full_like(large, num_buckets - 1))
    return result + torch.where(relative_position < exact, relative_position, large)


@exercise.alternative
def one_by_one(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    def bucket(relative):
        count = num_buckets // 2 if bidirectional else num_buckets
        start = count if bidirectional and relative > 0 else 0
        distance = abs(relative) if bidirectional else max(-relative, 0)
        exact = count // 2
        if distance < exact:
            return start + distance
        group = int(math.log(distance / exact) / math.log(max_distance / exact) * (count - exact))
        return start + min(exact + group, count - 1)

    flat = [bucket(relative) for relative in relative_position.flatten().tolist()]
    return torch.tensor(flat).view(relative_position.shape)


@exercise.alternative
def by_searching_the_limits(relative_position, bidirectional, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE):
    count = num_buckets // 2 if bidirectional else num_buckets
    exact = count // 2
    groups = torch.arange(1, count - exact, dtype=torch.float64)
    limits = torch.cat([torch.arange(1.0, exact + 1), exact * (max_distance / exact) ** (groups / (count - exact))])
    distance = relative_position.abs() if bidirectional else (-relative_position).clamp(min=0)
    found = torch.bucketize(distance.double(), limits.double(), right=True)
    return found + count * (relative_position > 0) if bidirectional else found
