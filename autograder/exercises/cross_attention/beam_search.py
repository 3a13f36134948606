"""Check `beam_search`: several beginnings side by side, the best by mean log-probability wins."""

import math

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.cross_attention import CHAPTER
from autograder.exercises.cross_attention.steps import SURE, PrefixStep
from autograder.program import Program
from autograder.values import Named
from course_lib import decoding

STEP = "step"
SEARCHES = 12  # in one case: two rules that differ seldom then differ somewhere
WIDE_VOCAB, LONG = 12, 7  # where nothing is likely, a beginning loses 2.5 nats with every token
SCORE_TOLERANCE = 1e-4  # relative; log-probabilities may be taken in float32


def searches(
    draw: Draw,
    beams: tuple[int, ...],
    vocab: int = 6,
    max_length: int = 6,
    spread: float = 1.5,
    likely_end: float = 0.0,
) -> Program:
    """Search through several drawn tables; `likely_end` is added to the logit of the end."""
    program = Program()
    for turn in range(SEARCHES):
        start, end = (int(token) for token in draw.random.choice(vocab, 2, replace=False))
        table = draw.normal(max_length, vocab, vocab, vocab, scale=spread)
        table[..., end] += likely_end
        program = program.call(Named(STEP, args=(table,)), start, end, max_length, beams[turn % len(beams)])
    return program


# Chances of the next token after a beginning; every other beginning leads nowhere. Token 0 is the end. Two beams.
CHOSEN: tuple[dict[tuple[int, ...], dict[int, float]], ...] = (
    # An ended sequence, pushed from the beam by two that lead nowhere, is the best of all.
    {(): {0: 0.3, 1: 0.7}, (1,): {3: 0.5, 4: 0.5}},
    # The third best beginning ends best, but an ended one holds its place.
    {(): {0: 0.4, 1: 0.35, 2: 0.25}, (2,): {0: 0.99, 3: 0.01}},
    # After an ending, the second best continuation ends best: the place is free again.
    {(): {0: 0.4, 1: 0.6}, (1,): {3: 0.51, 4: 0.49}, (1, 4): {0: 0.99, 5: 0.01}},
    # Both places go to continuations of one beginning, and the second of them ends best.
    {(): {1: 0.6, 2: 0.4}, (1,): {3: 0.51, 4: 0.49}, (1, 4): {0: 0.99, 5: 0.01}},
)


def chosen_beginnings(draw: Draw) -> Program:
    """Choose chances so that rules about ended sequences and about places part."""
    program = Program()
    for plan in CHOSEN:
        ids = [int(token) for token in draw.random.permutation(WIDE_VOCAB)]
        start, table = ids[-1], draw.normal(LONG, WIDE_VOCAB, WIDE_VOCAB, WIDE_VOCAB, scale=0.2)
        table[..., ids[0]] = -SURE
        for beginning, chances in plan.items():
            tokens = [start, *(ids[place] for place in beginning)]
            _set(table[len(tokens) - 1, tokens[-1], sum(tokens[:-1]) % WIDE_VOCAB], ids, chances)
        program = program.call(Named(STEP, args=(table,)), start, ids[0], LONG, 2)
    return program


def _set(logits: torch.Tensor, ids: list[int], chances: dict[int, float]) -> None:
    """Give the tokens of some ids their chances, and all others hardly any."""
    logits[:] = -SURE
    for place, chance in chances.items():
        logits[..., ids[place]] = math.log(chance) if chance else -SURE


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=decoding.beam_search,
    returns=("tokens", "score"),
    named={STEP: PrefixStep},
    tolerance=SCORE_TOLERANCE,
    cases=[
        Case("2 or 3 beams", lambda draw: searches(draw, (2, 3), likely_end=1.0)),
        Case("ends are likely", lambda draw: searches(draw, (3, 2), likely_end=2.0)),
        Case("chosen beginnings", chosen_beginnings, hidden=True),
        Case("ends are seldom", lambda draw: searches(draw, (2, 4), likely_end=-1.0), hidden=True),
        Case("a single beam", lambda draw: searches(draw, (1,), likely_end=0.5), hidden=True),
        Case(
            "more beams than tokens",
            lambda draw: searches(draw, (7,), vocab=4, max_length=4, likely_end=1),
            hidden=True,
        ),
    ],
)
