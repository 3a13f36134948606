"""Check `mask_tokens` by statistics and structure: BERT's 15 percent, of which 80, 10 and 10."""

from __future__ import annotations

from functools import partial

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.variants import CHAPTER
from autograder.exercises.variants.chosen_tokens import masked_as_asked, same_belief
from autograder.exercises.variants.mask_forms import ACCEPTED_FORMS
from autograder.program import Program, call
from course_lib import objectives

ROWS, LENGTH, VOCAB, FEW_WORDS = 200, 100, 120, 4


def text(draw: Draw) -> tuple[torch.Tensor, int, list[int]]:
    """Draw a text with special tokens at both ends and padding of different lengths, a mask id and special ids."""
    ids = draw.random.permutation(VOCAB).tolist()
    mask_id, first, last, pad, extra = ids[:5]
    ordinary = torch.tensor(list(ids[5:]))
    tokens = ordinary[draw.integers(0, len(ordinary), ROWS, LENGTH)]
    tokens[:, 0], tokens[:, -1] = first, last
    lengths = draw.integers(LENGTH - 30, LENGTH, ROWS)
    tokens[torch.arange(LENGTH) >= lengths[:, None]] = pad
    return tokens, mask_id, sorted([first, last, pad, extra])


def equal_generators(draw: Draw, **chance: float) -> Program:
    """Mask one text twice with equal generators."""
    tokens, mask_id, special = text(draw)
    arguments = (tokens, mask_id, VOCAB, special, draw.generator())
    return call(*arguments, **chance).call(*arguments, **chance)


def different_generators(draw: Draw, **chance: float) -> Program:
    """Mask one text twice with different generators."""
    tokens, mask_id, special = text(draw)
    first, second = draw.generator(), draw.generator()
    return call(tokens, mask_id, VOCAB, special, first, **chance).call(
        tokens, mask_id, VOCAB, special, second, **chance
    )


def once(draw: Draw, p: float) -> Program:
    """Mask a text once, with a chance of none or all."""
    tokens, mask_id, special = text(draw)
    return call(tokens, mask_id, VOCAB, special, draw.generator(), p=p)


def few_words(draw: Draw) -> Program:
    """Choose all of a long text of very few words, where a replacement that is the mask would be seen in the shares."""
    ids = draw.random.permutation(FEW_WORDS + 3).tolist()
    mask_id, first, last = ids[:3]
    tokens = torch.tensor(ids[3:])[draw.integers(0, FEW_WORDS, 3 * ROWS, LENGTH)]
    tokens[:, 0], tokens[:, -1] = first, last
    return call(tokens, mask_id, len(ids), sorted([first, last]), draw.generator(), p=1.0)


judged = partial(Case, judge=masked_as_asked, alike=same_belief)

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=objectives.mask_tokens,
    returns=("the inputs", "the labels"),
    cases=[
        judged("a batch of texts, equal generators", equal_generators),
        judged("nothing is chosen", lambda draw: once(draw, 0.0)),
        judged("different generators", different_generators, hidden=True),
        judged("another chance", lambda draw: equal_generators(draw, p=draw.number(0.3, 0.5)), hidden=True),
        judged("everything is chosen", lambda draw: once(draw, 1.0), hidden=True),
        judged("everything of four words is chosen", few_words, hidden=True),
    ],
)

for form in ACCEPTED_FORMS:
    exercise.alternative(form)
