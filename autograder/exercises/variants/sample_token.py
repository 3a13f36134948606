"""Check `sample_token` by hundreds of draws: temperature, then top-k, then top-p."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.variants import CHAPTER
from autograder.exercises.variants.drawn_tokens import DRAWS, EQUAL, drawn_as_asked, same_belief
from autograder.program import Program, call
from course_lib import sampling

# Chances that no rule confuses: each cut below falls between two of them.
SHARES = (0.34, 0.26, 0.17, 0.13, 0.1)


def shuffled(draw: Draw, shares: tuple[float, ...] = SHARES) -> torch.Tensor:
    """Give logits with known chances, at drawn places, and the likeliest neither first nor last."""
    order = draw.random.permutation(len(shares))
    while order[0] in (0, 1) or order[-1] in (0, 1):
        order = draw.random.permutation(len(shares))
    logits = torch.tensor([math.log(shares[place]) for place in order]) + draw.number(-3, 3)
    return draw.array(logits.numpy().astype(float))


def many(draw: Draw, **settings: Any) -> Program:
    """Draw many times with different generators, and a few times with equal ones."""
    logits, program = shuffled(draw), Program()
    for _ in range(DRAWS):
        program = program.call(logits, generator=draw.generator(), **settings)
    again = draw.generator()
    for _ in range(EQUAL):
        program = program.call(logits, generator=again, **settings)
    return program


def greedy(draw: Draw) -> Program:
    """Ask at temperature 0, where the likeliest token is the only one."""
    logits = shuffled(draw)
    return call(logits, temperature=0, generator=draw.generator()).call(
        logits, temperature=0.0, top_k=3, top_p=0.9, generator=draw.generator()
    )


def nothing_to_choose(draw: Draw) -> Program:
    """Leave one token by top-k, by a small p, and by a temperature near 0."""
    logits = shuffled(draw)
    program = call(logits, top_k=1, generator=draw.generator())
    program = program.call(logits, top_p=0.01, generator=draw.generator())
    return program.call(logits, temperature=1e-3, generator=draw.generator())


def no_generator(draw: Draw) -> Program:
    """Leave the generator out where there is nothing to choose, and allow more tokens than there are."""
    logits = shuffled(draw)
    return call(logits, 1.0, 1).call(logits, 0.001, 50, 1.0)


judged = partial(Case, judge=drawn_as_asked, alike=same_belief)

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=sampling.sample_token,
    returns=("the token",),
    cases=[
        judged("plain", many),
        judged("temperature 0.25", partial(many, temperature=0.25)),
        Case("temperature 0", greedy),
        judged("the 3 likeliest", partial(many, top_k=3)),
        judged("p = 0.7", partial(many, top_p=0.7)),
        Case("nothing to choose", nothing_to_choose, hidden=True),
        judged("temperature 2 and p = 0.72", partial(many, temperature=2.0, top_p=0.72), hidden=True),
        # Of the 3 likeliest the first has 0.44 and the first two 0.78; of all, the first two have 0.6.
        judged("the 3 likeliest, then p = 0.7", partial(many, top_k=3, top_p=0.7), hidden=True),
        Case("without a generator", no_generator, hidden=True),
        judged("float64", partial(many, temperature=1.5, top_k=4), hidden=True, dtype="float64"),
    ],
)
