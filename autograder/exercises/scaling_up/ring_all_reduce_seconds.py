"""Check `ring_all_reduce_seconds`: how long a sum over all workers takes around a ring."""

import math

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.scaling_up import CHAPTER
from autograder.program import Program, call
from course_lib.training import parallel


def drawn(draw: Draw, workers: int | None = None) -> Program:
    """Draw a tensor and a network in which latency and bytes take about as long."""
    num_bytes = draw.integer(10**6, 10**7)
    latency, bandwidth = round(draw.number(1e-4, 9e-4), 7), round(draw.number(2e9, 9e9))
    return call(num_bytes, workers or draw.integer(3, 9), latency, bandwidth)


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=parallel.ring_all_reduce_seconds,
    returns=("the seconds",),
    cases=[
        Case("8 workers, 100 MB", lambda draw: call(100_000_000, 8, 1e-5, 25e9)),
        Case("all numbers differ", drawn),
        Case("one worker", lambda draw: drawn(draw, 1), hidden=True),
        Case("two workers", lambda draw: drawn(draw, 2), hidden=True),
        Case("no latency", lambda draw: call(draw.integer(10**6, 10**7), draw.integer(3, 9), 0.0, 5e9), hidden=True),
        Case("no bytes", lambda draw: call(0, draw.integer(3, 9), draw.number(1e-4, 9e-4), 5e9), hidden=True),
        Case("many workers", lambda draw: drawn(draw, draw.integer(100, 900)), hidden=True),
    ],
)


def seconds(num_bytes, workers, latency, bandwidth, *, rounds=None, pieces=None, delays=None):
    """Estimate with each part of the formula as it is or changed."""
    rounds = 2 * (workers - 1) if rounds is None else rounds
    delays = rounds if delays is None else delays
    return delays * latency + rounds * num_bytes / ((workers if pieces is None else pieces) * bandwidth)


@exercise.misconception("""
    A worker sends its whole tensor in every round. In a ring it sends one p-th of it: that is what makes the ring
    good for large tensors. (The same number comes out if you add the bytes of all workers; they send at the same time,
    each over its own link.)
""")
def whole_tensor_every_round(num_bytes, workers, latency, bandwidth):
    return seconds(num_bytes, workers, latency, bandwidth, pieces=1)


@exercise.misconception("""
    Half of the work is missing: after p - 1 rounds every worker has the sum of **one** piece. How does it get the
    other pieces?
""")
def sums_not_shared(num_bytes, workers, latency, bandwidth):
    return seconds(num_bytes, workers, latency, bandwidth, rounds=workers - 1)


@exercise.misconception("""
    There are 2p rounds in your ring. A worker has its own part from the start, so each half takes p - 1 rounds; one
    worker alone takes no time at all.
""")
def too_many_rounds(num_bytes, workers, latency, bandwidth):
    return seconds(num_bytes, workers, latency, bandwidth, rounds=2 * workers)


@exercise.misconception("""
    The latency counts once in your estimate, as in document B's formula. The rounds wait for one another, and each
    begins with a message of its own.
""")
def one_latency(num_bytes, workers, latency, bandwidth):
    return seconds(num_bytes, workers, latency, bandwidth, delays=1)


@exercise.misconception("""
    The latency has no influence. For small tensors it is nearly all of the time.
""")
def no_latency(num_bytes, workers, latency, bandwidth):
    return seconds(num_bytes, workers, latency, bandwidth, delays=0)


@exercise.misconception("""
    Your workers send one another everything twice, 2 · bytes / bandwidth, however many they are. That is near the
    truth for many workers; for two it is twice too much. Which share of the tensor does a worker not have to send?
""")
def share_forgotten(num_bytes, workers, latency, bandwidth):
    return 2 * (workers - 1) * latency + 2 * num_bytes / bandwidth


@exercise.misconception("""
    You multiply by the bandwidth. Bytes divided by bytes per second are seconds.
""")
def times_bandwidth(num_bytes, workers, latency, bandwidth):
    rounds = 2 * (workers - 1)
    return rounds * (latency + num_bytes / workers * bandwidth)


@exercise.misconception("""
    Your estimate is that of a tree: about log2(p) rounds with the whole tensor in each. It has fewer messages and more
    bytes. The contract asks for the ring.
""")
def tree(num_bytes, workers, latency, bandwidth):
    return 2 * math.ceil(math.log2(workers)) * (latency + num_bytes / bandwidth)


@exercise.misconception("""
    The latency counts p - 1 times, and there are two passes around the ring.
""")
def half_the_latencies(num_bytes, workers, latency, bandwidth):
    return seconds(num_bytes, workers, latency, bandwidth, delays=workers - 1)


@exercise.alternative
def round_by_round(num_bytes, workers, latency, bandwidth):
    return sum(latency + num_bytes / workers / bandwidth for _ in range(2 * (workers - 1)))


@exercise.alternative
def in_two_terms(num_bytes, workers, latency, bandwidth):
    return 2 * (workers - 1) * latency + 2 * (workers - 1) / workers * num_bytes / bandwidth


@exercise.alternative
def two_phases(num_bytes, workers, latency, bandwidth):
    if workers == 1:
        return 0
    reduce_scatter = (workers - 1) * (latency + (num_bytes / workers) / bandwidth)
    all_gather = reduce_scatter
    return reduce_scatter + all_gather
