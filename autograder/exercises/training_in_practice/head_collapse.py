"""Check `head_collapse`: which pairs of heads look at the same places?"""

import itertools
from typing import Any

import torch
import torch.nn.functional as F

from autograder.compare import difference
from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.training_in_practice import CHAPTER
from autograder.program import Program, Run, call
from course_lib import head_collapse
from course_lib.head_analysis import head_similarity

SHARP = 3.0  # scale of scores at which unrelated maps differ clearly
BATCH, HEADS, QUERIES, KEYS = 3, 5, 4, 7


def maps(draw: Draw, scale: float = SHARP) -> torch.Tensor:
    """Draw the maps of five unrelated heads."""
    return draw.normal(BATCH, HEADS, QUERIES, KEYS, scale=scale).softmax(-1)


def blended(first: torch.Tensor, second: torch.Tensor, similarity: float) -> torch.Tensor:
    """Mix two maps until the mean cosine of the mix with the first is the one wanted."""
    low, high = 0.0, 1.0
    for _ in range(50):
        share = (low + high) / 2
        mix = share * first + (1 - share) * second
        cosine = F.cosine_similarity(first.flatten(1), mix.flatten(1)).mean()
        low, high = (share, high) if cosine < similarity else (low, share)
    return mix


def copied(draw: Draw) -> Program:
    """Make one head a copy and one nearly a copy of others."""
    weights = maps(draw)
    weights[:, 4] = weights[:, 1]
    weights[:, 3] = blended(weights[:, 0], weights[:, 3], 0.98)
    return call(weights)


def other_threshold(draw: Draw, threshold: float, alike: tuple[float, float]) -> Program:
    """Make two pairs whose likeness lies on both sides of a threshold that is given."""
    weights = maps(draw)
    for (first, second), similarity in zip(((0, 2), (1, 4)), alike, strict=True):
        weights[:, second] = blended(weights[:, first], weights[:, second], similarity)
    return call(weights, threshold)


def alike_in_one_example(draw: Draw) -> Program:
    """Make two heads equal in one example of three, and two others in all of them."""
    weights = maps(draw)
    weights[0, 2] = weights[0, 0]
    weights[:, 4] = weights[:, 3]
    return call(weights)


def alike_on_average(draw: Draw) -> Program:
    """Exchange examples between heads, so that averages over the batch are equal and the maps are not."""
    weights = maps(draw)
    weights[:, 3] = weights[:, 1].roll(1, 0)
    weights[:, 2] = weights[:, 0]
    return call(weights)


def baseline_taken_away(draw: Draw) -> Program:
    """Give maps less the even one: soft heads are no longer alike, and opposite ones have a cosine near −1."""
    weights = maps(draw, scale=0.3) - 1 / KEYS
    weights[:, 3] = weights[:, 1]
    weights[:, 4] = -weights[:, 0]
    return call(weights)


def the_same_pairs(program: Program, found: Run) -> str | None:
    """Compare pairs in whatever order they are listed."""
    step = program.steps[0]
    expected = head_collapse.head_collapse(*step.args, **step.kwargs)
    outcome = found.outcomes[0]
    pairs = _pairs(outcome)
    if pairs is None:
        return difference(expected, outcome, "the result") or "expected the result to be a list of pairs of numbers"
    if sorted(pairs) == expected:
        return None
    if len(pairs) != len(set(pairs)) or any(first >= second for first, second in pairs):
        wrong = next(pair for pair in pairs if pair[0] >= pair[1] or pairs.count(pair) > 1)
        return f"expected each pair once, with the lower number first, but the list has {wrong}"
    return f"expected the pairs {expected}, but they are {sorted(pairs)}"


def _pairs(outcome: Any) -> list[tuple[int, int]] | None:
    """Read pairs from a list of pairs, or give None."""
    if not isinstance(outcome, (list, tuple)):
        return None
    pairs = []
    for pair in outcome:
        numbers = pair.tolist() if isinstance(pair, torch.Tensor) else pair
        if not isinstance(numbers, (list, tuple)) or len(numbers) != 2:
            return None
        numbers = [number.item() if hasattr(number, "item") else number for number in numbers]
        if any(type(number) is not int for number in numbers):
            return None
        pairs.append((numbers[0], numbers[1]))
    return pairs


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=head_collapse.head_collapse,
    returns=("the list",),
    cases=[
        Case("a copy and a near copy", copied, judge=the_same_pairs),
        Case("unrelated heads", lambda draw: call(maps(draw)), judge=the_same_pairs),
        Case("a lower threshold", lambda draw: other_threshold(draw, 0.8, (0.85, 0.7)), judge=the_same_pairs),
        Case("alike in one example only", alike_in_one_example, judge=the_same_pairs, hidden=True),
        Case("alike on average only", alike_on_average, judge=the_same_pairs, hidden=True),
        Case("a baseline taken away", baseline_taken_away, judge=the_same_pairs, hidden=True),
        Case(
            "a higher threshold",
            lambda draw: other_threshold(draw, 0.99, (0.995, 0.97)),
            judge=the_same_pairs,
            hidden=True,
        ),
        Case("float64", copied, judge=the_same_pairs, hidden=True, dtype="float64"),
    ],
)


def _above(similarity, threshold):
    heads = len(similarity)
    return [(i, j) for i in range(heads) for j in range(i + 1, heads) if similarity[i, j] > threshold]


@exercise.misconception("""
    Your list says that every head is like itself. That is true and no alarm: a pair is two different heads.
""")
def heads_with_themselves(weights, threshold=0.95):
    similarity = head_similarity(weights)
    return [(i, j) for i in range(len(similarity)) for j in range(i, len(similarity)) if similarity[i, j] > threshold]


@exercise.misconception("""
    Every pair is in your list twice, as (i, j) and as (j, i). List each once, with the lower number first.
""")
def both_orders(weights, threshold=0.95):
    similarity = head_similarity(weights)
    heads = range(len(similarity))
    return [(i, j) for i in heads for j in heads if i != j and similarity[i, j] > threshold]


@exercise.misconception("""
    You always compare with 0.95. `threshold` is an argument; 0.95 is only what it is if nobody says otherwise.
""")
def threshold_ignored(weights, threshold=0.95):
    return _above(head_similarity(weights), 0.95)


@exercise.misconception("""
    You list the pairs that are **less** alike than the threshold. An alarm should name the ones that are more alike.
""")
def unlike_pairs(weights, threshold=0.95):
    similarity = head_similarity(weights)
    heads = len(similarity)
    return [(i, j) for i in range(heads) for j in range(i + 1, heads) if similarity[i, j] < threshold]


@exercise.misconception("""
    A pair that agrees in a single example is enough for your alarm. Heads have collapsed when they agree on average
    over the batch.
""")
def any_example(weights, threshold=0.95):
    maps = F.normalize(weights.flatten(2), dim=-1)
    return _above((maps @ maps.mT).amax(0), threshold)


@exercise.misconception("""
    You average the maps over the batch before you compare them. Two heads that look at different places in every
    example can have the same average. Compare first, then average.
""")
def maps_averaged_first(weights, threshold=0.95):
    maps = F.normalize(weights.mean(0).flatten(1), dim=-1)
    return _above(maps @ maps.mT, threshold)


@exercise.misconception("""
    You take the size of the similarity without its sign. A similarity near −1, which is possible once a baseline is
    taken away, means that two heads look at opposite places.
""")
def without_sign(weights, threshold=0.95):
    return _above(head_similarity(weights).abs(), threshold)


@exercise.misconception("""
    You compare only heads that are neighbors, 0 with 1, 1 with 2, and so on. Any two heads of a layer can agree.
""")
def neighbors_only(weights, threshold=0.95):
    similarity = head_similarity(weights)
    return [(i, i + 1) for i in range(len(similarity) - 1) if similarity[i, i + 1] > threshold]


@exercise.misconception("""
    You list the heads that have a double. Asked for are pairs: who agrees with whom.
""")
def single_heads(weights, threshold=0.95):
    return sorted({head for pair in _above(head_similarity(weights), threshold) for head in pair})


@exercise.misconception("""
    You return a number: how many pairs there are. Return the pairs.
""")
def count_of_pairs(weights, threshold=0.95):
    return len(_above(head_similarity(weights), threshold))


@exercise.alternative
def by_indices(weights, threshold=0.95):
    return torch.nonzero(head_similarity(weights).triu(1) > threshold).tolist()


@exercise.alternative
def by_combinations(weights, threshold=0.95):
    similarity = head_similarity(weights)
    return [pair for pair in itertools.combinations(range(weights.shape[1]), 2) if similarity[pair] > threshold]


@exercise.alternative
def from_the_last_pair_on(weights, threshold=0.95):
    maps = weights.flatten(2)
    found = []
    for i in reversed(range(weights.shape[1])):
        for j in range(i):
            if F.cosine_similarity(maps[:, i], maps[:, j], dim=-1).mean() > threshold:
                found.append((torch.tensor(j), torch.tensor(i)))
    return found
