"""What a BigBird mask shows, told from the mask alone: different honest draws give different, equally right masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.compare import difference
from autograder.draw import Draw
from autograder.program import Program, Run, call
from autograder.values import Raised
from course_lib.efficient.sparse import longformer_mask


def two_draws(draw: Draw, length: int, window: int, num_global: int, num_random: int) -> Program:
    """Ask twice with equal generators and once with another."""
    sizes, first = (length, window, num_global, num_random), draw.generator()
    return call(*sizes, first).call(*sizes, first).call(*sizes, draw.generator())


@dataclass(frozen=True)
class Symptoms:
    """What one mask shows: the sets of rules that it breaks, each with a sentence."""

    broken: tuple[str, ...]
    sentence: str | None


def symptoms(program: Program, found: Run) -> Symptoms:
    """Look through a run's masks for every rule that they break; the first one's sentence is kept."""
    length, window, num_global, num_random = program.steps[0].args[:4]
    fixed = longformer_mask(length, window, list(range(num_global)))
    for outcome in found.outcomes:
        if not isinstance(outcome, Tensor) or outcome.dtype != torch.bool or outcome.shape != fixed.shape:
            return Symptoms(("form",), difference(fixed, outcome, "the mask"))
    first, again, other = found.outcomes
    notes = _of_the_fixed_part(first, fixed, window, num_global)
    notes |= _of_the_random_part(first, fixed, num_global, num_random)
    if not torch.equal(first, again):
        notes["generator"] = "two calls with equal generators give different masks: draw from `generator` alone"
    free = fixed[num_global:].sum(-1)
    if num_random and bool((free > num_random).any()) and torch.equal(first, other):
        notes["fixed"] = "two calls with different generators show the very same keys"
    return Symptoms(tuple(notes), next(iter(notes.values()), None))


def as_asked(program: Program, found: Run) -> str | None:
    """Judge the masks of a run."""
    return symptoms(program, found).sentence


def same_belief(program: Program, first: Run, second: Run) -> bool:
    """Tell whether two runs break the same rules, although they drew different keys."""
    raised = [[outcome for outcome in run.outcomes if isinstance(outcome, Raised)] for run in (first, second)]
    if raised[0] or raised[1]:
        return raised[0] == raised[1]
    return symptoms(program, first).broken == symptoms(program, second).broken


def _of_the_fixed_part(mask: Tensor, fixed: Tensor, window: int, num_global: int) -> dict[str, str]:
    length = len(mask)
    places = torch.arange(length)
    near = (places[:, None] - places).abs() < window
    notes = {}
    if bool(mask[:num_global].any()):
        notes["rows"] = f"the first {num_global} tokens should see everything, but some keys are hidden from them"
    if bool(mask[num_global:, :num_global].any()):
        notes["columns"] = f"every token should see the first {num_global}, but some of them are hidden"
    if bool((mask & near & (places[:, None] >= num_global) & (places >= num_global)).any()):
        i, j = (mask & near).nonzero()[0].tolist()
        notes["window"] = f"query {i} and key {j} are less than {window} apart, but the key is hidden"
    return notes


def _of_the_random_part(mask: Tensor, fixed: Tensor, num_global: int, num_random: int) -> dict[str, str]:
    notes = {}
    free, further = fixed[num_global:], (fixed & ~mask)[num_global:]
    wanted = free.sum(-1).clamp(max=num_random)
    wrong = (further.sum(-1) != wanted).nonzero().squeeze(-1).tolist()
    if wrong:
        came, right = int(further[wrong[0]].sum()), int(wanted[wrong[0]])
        too = "few" if all(further[row].sum() < wanted[row] for row in wrong) else "many"
        where = "all" if len(wrong) == len(further) else "some"
        notes[f"too {too} in {where}"] = (
            f"beside window and global tokens, query {num_global + wrong[0]} should see {right} further "
            f"key{'s' * (right != 1)}, but it sees {came}"
        )
    if _enough_to_tell(free, wanted):
        notes |= _of_the_draw(further, free, num_global)
    return notes


def _enough_to_tell(free: Tensor, wanted: Tensor) -> bool:
    """Say whether so many keys were drawn from so many that structure in them is no accident."""
    return bool((wanted >= 2).sum() >= 12 and (free.sum(-1) - wanted >= 8).sum() >= 12)


def _of_the_draw(further: Tensor, free: Tensor, num_global: int) -> dict[str, str]:
    notes = {}
    ahead = further.triu(num_global + 1)
    if further.any() and not ahead.any():
        notes["past"] = "no query's random keys lie ahead of it: they may be anywhere in the sequence"
    elif further.any() and bool((ahead == further).all()):
        notes["future"] = "no query's random keys lie behind it: they may be anywhere in the sequence"
    columns = further.any(0)
    if further.any() and int(columns.sum()) <= int(further.sum(-1).max()) + 2 * (len(further) > 20):
        notes["same"] = "all queries got the same random keys: each row draws its own"
    rows = zip(further.tolist(), free.tolist(), strict=True)
    if further.any() and all(_in_one_piece([drawn for drawn, may in zip(*row, strict=True) if may]) for row in rows):
        notes["runs"] = "the random keys of every query lie side by side: each of them should be drawn on its own"
    return notes


def _in_one_piece(drawn: list[bool]) -> bool:
    """Say whether what was drawn lies side by side, among the keys that could be drawn."""
    places = [place for place, taken in enumerate(drawn) if taken]
    return not places or places[-1] - places[0] < len(places)
