"""Check `alignment`: where each query looks most, and how often that does not go back."""

from itertools import pairwise

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.cross_attention import CHAPTER
from autograder.program import Program, call
from course_lib import alignment

FRACTION_TOLERANCE = 1e-5  # relative; the mean may be taken in float32


def peaked(draw: Draw, best: list[int], keys: int) -> Program:
    """Draw a soft map whose largest weights lie at given places."""
    weights = (1.5 * draw.normal(len(best), keys)).softmax(-1)
    for row, place in zip(weights, best, strict=True):
        top = int(row.argmax())
        row[[top, place]] = row[[place, top]]
    return call(weights)


def walk(draw: Draw) -> Program:
    """Draw a map that stands, goes forward, jumps, goes back, and comes forward again without catching up."""
    steps = [[0], [1], [2], [-3, 1], [1], [0], [2]]
    order = draw.random.permutation(len(steps))
    places, best = draw.integer(3, 4), []
    best.append(places)
    for step in (step for index in order for step in steps[int(index)]):
        best.append(best[-1] + step)
    lowest = min(best)
    best = [place - lowest for place in best]
    return peaked(draw, best, max(best) + 1 + draw.integer(1, 2))


def at_random(draw: Draw) -> Program:
    """Draw a map without any order."""
    queries, keys = draw.sizes(2, low=6, high=12)
    return call((2 * draw.normal(queries, keys)).softmax(-1))


def straight(draw: Draw, direction: int) -> Program:
    """Draw a diagonal, or an anti-diagonal."""
    length = draw.integer(4, 8)
    return peaked(draw, list(range(length))[::direction], length + 2)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=alignment.alignment,
    returns=("argmax per query", "fraction"),
    tolerance=FRACTION_TOLERANCE,
    cases=[
        Case("forward, back, and standing still", walk),
        Case("a diagonal", lambda draw: straight(draw, 1)),
        Case("an anti-diagonal", lambda draw: straight(draw, -1), hidden=True),
        Case("back, and forward again", lambda draw: peaked(draw, [0, 3, 1, 2, 4], 7), hidden=True),
        Case("no order", at_random, hidden=True),
        Case("a single query", lambda draw: peaked(draw, [draw.integer(0, 4)], 5), hidden=True),
        Case("float64", walk, hidden=True, dtype="float64"),
    ],
)


def _fraction(steps):
    return float(steps.double().mean()) if len(steps) else 1.0


def _best(weights):
    return weights.argmax(-1)


@exercise.misconception("""
    Your first result has an entry for each key: who looks at it most. Asked is the other direction: where does each
    **query** look most?
""")
def argmax_over_queries(weights):
    best = weights.argmax(0)
    return best, _fraction(best[1:] >= best[:-1])


@exercise.misconception("""
    Your first result is one number: the largest weight of the whole map, counted through all rows. Each query has a
    place of its own.
""")
def argmax_of_everything(weights):
    _, fraction = alignment.alignment(weights)
    return weights.argmax(), fraction


@exercise.misconception("""
    You count only steps that go forward. Standing still does not go back either: several letters of a translation may
    come from one of the source.
""")
def standing_counts_as_back(weights):
    best = _best(weights)
    return best, _fraction(best[1:] > best[:-1])


@exercise.misconception("""
    You count only steps by exactly one place. That is a strict diagonal; asked is whether a step goes back.
""")
def exactly_one_place(weights):
    best = _best(weights)
    return best, _fraction(best[1:] == best[:-1] + 1)


@exercise.misconception("""
    Your fraction counts the steps that **do** go back. Asked are the others.
""")
def steps_back(weights):
    best = _best(weights)
    return best, _fraction(best[1:] < best[:-1])


@exercise.misconception("""
    You divide by the number of queries. n queries take n − 1 steps.
""")
def divided_by_queries(weights):
    best = _best(weights)
    return best, int((best[1:] >= best[:-1]).sum()) / len(best)


@exercise.misconception("""
    You return how many steps do not go back; asked is their share of all steps.
""")
def counted(weights):
    best = _best(weights)
    return best, int((best[1:] >= best[:-1]).sum())


@exercise.misconception("""
    You compare with the furthest place so far. A step is from one query to the next: whoever went back and comes
    forward again does not go back in that step.
""")
def behind_the_furthest(weights):
    best = _best(weights)
    return best, _fraction(best[1:] >= best.cummax(0).values[:-1])


@exercise.misconception("""
    You take the mean place of a row, rounded. Where a query looks at two places at once, that is a place between them
    at which it does not look.
""")
def mean_place(weights):
    best = (weights * torch.arange(weights.shape[-1])).sum(-1).round().long()
    return best, _fraction(best[1:] >= best[:-1])


@exercise.misconception("""
    A single query takes no step, and your fraction is NaN. Nothing went back, so say 1.
""")
def nan_without_steps(weights):
    best = _best(weights)
    return best, float((best[1:] >= best[:-1]).double().mean())


@exercise.misconception("""
    You compare with the diagonal: how many queries look at the place of their own number. A map may move forward
    without being square; asked is the direction of its steps.
""")
def on_the_diagonal(weights):
    best = _best(weights)
    return best, float((best == torch.arange(len(best))).double().mean())


@exercise.alternative
def by_diff(weights):
    best = torch.max(weights, dim=1).indices
    forward = torch.diff(best) >= 0
    return best, (forward.float().mean().item() if forward.numel() else 1.0)


@exercise.alternative
def by_loop(weights):
    best = [int(row.argmax()) for row in weights]
    steps = list(pairwise(best))
    return torch.tensor(best), sum(b >= a for a, b in steps) / len(steps) if steps else 1.0


@exercise.alternative
def with_a_tensor_fraction(weights):
    best = weights.argmax(dim=-1)
    back = (best[1:] < best[:-1]).sum()
    return best, 1 - back / max(1, len(best) - 1)


@exercise.alternative
def by_topk(weights):
    best = weights.topk(1, dim=-1).indices.squeeze(-1)
    forward = int((best[1:] - best[:-1] >= 0).sum())
    return best, forward / (len(best) - 1) if len(best) > 1 else 1.0
