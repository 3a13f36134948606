"""Judge masked texts by shares and structure: different honest draws mask different tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from autograder.compare import difference
from autograder.program import Program, Run
from autograder.values import Raised

IGNORED = -100
CHOSEN_BAND = 0.025  # more than five standard deviations at the 20,000 tokens of a case
FATE_BAND = 0.045  # the same, at the 2,500 or more tokens that are chosen
MASKED_DEVIATIONS = 5.7  # of the share that is masked; a right answer is further off once in many millions
NEIGHBOR_BAND = 0.06  # of the share of chosen tokens whose right neighbor is chosen too: seven standard deviations
SEEDED_BAND = 0.3  # the same, where beliefs are told apart: one row of chances serves a whole batch in some
FOUND_AMONG = 0.9  # of the ordinary ids occur among replacements, where there are enough of these
VARIETY_BAND = 0.05  # of this share, where beliefs are told apart
ENOUGH = 10  # replacements for each ordinary id
EVENNESS = 0.5  # a number per row whose variance is below this share of a binomial's was not left to chance


@dataclass(frozen=True)
class Masked:
    """What can be read from a masked text, whatever was drawn."""

    chosen: float  # share of ordinary tokens that carry a label
    masked: float  # shares of the labeled ones
    replaced: float
    kept: float
    special_labels: bool
    special_inputs: bool
    special_replacements: bool
    label_is_original: bool
    outside: float  # the label of what is not chosen, or NaN where several are
    outside_changed: float  # share of unlabeled tokens that differ from the text
    neighbors: float  # share of the chosen whose right neighbor is chosen too
    variety: float  # share of the ordinary ids that occur among replacements; 1 where these are too few to tell
    asked: int  # number of chosen tokens
    same_in_all_rows: bool
    same_number_in_all_rows: bool

    def like(self, other: Masked) -> bool:
        """Tell whether two texts follow one rule."""
        for item in fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            if item.name == "outside":
                alike = mine == theirs or (mine != mine and theirs != theirs)
            elif item.name == "asked":
                continue
            elif item.name == "neighbors":
                alike = abs(mine - theirs) < SEEDED_BAND
            elif item.name == "variety":
                alike = abs(mine - theirs) < VARIETY_BAND
            elif isinstance(mine, bool):
                alike = mine == theirs
            else:
                alike = abs(mine - theirs) < (FATE_BAND if item.name in ("masked", "replaced", "kept") else CHOSEN_BAND)
            if not alike:
                return False
        return True


def read(program: Program, outcome: tuple[Tensor, Tensor]) -> Masked:
    """Find out what was done to a text."""
    tokens, mask_id, vocab_size, special_ids = program.steps[0].args[:4]
    inputs, labels = outcome
    special = torch.isin(tokens, torch.tensor(special_ids))
    ordinary = ~special
    outside = labels[ordinary & ((labels != tokens) | (inputs == tokens)) & (labels != inputs)]
    values = labels[(labels < 0)].unique()
    chosen = labels >= 0
    counted = chosen & ordinary
    masked = counted & (inputs == mask_id)
    changed = counted & (inputs != tokens) & ~masked
    kept = counted & (inputs == tokens)
    number = max(1, int(counted.sum()))
    followed = counted[..., :-1] & ordinary[..., 1:]
    ids = vocab_size - len({mask_id, *special_ids})
    rows = counted.double()
    per_row = rows.sum(-1)
    mean = float(per_row.mean() / rows.shape[-1])
    binomial = rows.shape[-1] * mean * (1 - mean)
    return Masked(
        chosen=float(counted.sum() / max(1, int(ordinary.sum()))),
        masked=int(masked.sum()) / number,
        replaced=int(changed.sum()) / number,
        kept=int(kept.sum()) / number,
        special_labels=bool((chosen & special).any()),
        special_inputs=bool((special & (inputs != tokens)).any()),
        special_replacements=bool(torch.isin(inputs[changed], torch.tensor([*special_ids])).any()),
        label_is_original=bool((labels[chosen] == tokens[chosen]).all()),
        outside=float(values[0]) if len(values) == 1 else float("nan") if len(values) or not len(outside) else 0.0,
        outside_changed=float(((inputs != tokens) & ~chosen).double().mean()),
        neighbors=int((followed & counted[..., 1:]).sum()) / max(1, int(followed.sum())),
        variety=len(inputs[changed].unique()) / ids if int(changed.sum()) >= ENOUGH * ids else 1.0,
        asked=int(counted.sum()),
        same_in_all_rows=bool((chosen == chosen[:1]).all()) and bool(chosen.any()),
        same_number_in_all_rows=0 < mean < 1 and float(per_row.var()) < EVENNESS * binomial,
    )


def masked_as_asked(program: Program, found: Run) -> str | None:
    """Judge masked texts, and what equal and different generators do to them."""
    for step, outcome in zip(program.steps, found.outcomes, strict=True):
        sentence = _form(step.args[0], outcome) or _kind(read(program, outcome), _chance(step), step.args[0])
        if sentence:
            return sentence
    if len(found.outcomes) < 2:
        return None
    equal = all(torch.equal(*pair) for pair in zip(*found.outcomes, strict=True))
    same_generator = program.steps[0].args[4] == program.steps[1].args[4]
    if same_generator and not equal:
        return "two calls with equal generators mask different tokens"
    if not same_generator and equal:
        return "two calls with different generators mask the very same tokens"
    return None


def same_belief(program: Program, first: Run, second: Run) -> bool:
    """Tell whether two runs follow one rule, although they drew different tokens."""
    pairs = list(zip(first.outcomes, second.outcomes, strict=True))
    texts = [step.args[0] for step in program.steps]
    if any(_form(text, outcome) for text, pair in zip(texts, pairs, strict=True) for outcome in pair):
        return all(_same_failure(one, other) for one, other in pairs)
    if len(pairs) == 2:
        repeats = [all(torch.equal(*p) for p in zip(*run.outcomes, strict=True)) for run in (first, second)]
        if repeats[0] != repeats[1]:
            return False
    return all(read(program, one).like(read(program, other)) for one, other in pairs)


def _same_failure(one: Any, other: Any) -> bool:
    return isinstance(one, Raised) and isinstance(other, Raised) and one == other


def _chance(step: Any) -> float:
    return step.args[5] if len(step.args) > 5 else step.kwargs.get("p", 0.15)


def _form(tokens: Tensor, outcome: Any) -> str | None:
    if not isinstance(outcome, (tuple, list)) or len(outcome) != 2:
        return difference((tokens, tokens), outcome, "the result", parts=("the inputs", "the labels"))
    for name, part in zip(("the inputs", "the labels"), outcome, strict=True):
        if not isinstance(part, Tensor) or part.shape != tokens.shape or part.dtype.is_floating_point:
            return difference(tokens, part, name)
    return None


def _kind(seen: Masked, p: float, tokens: Tensor) -> str | None:
    if seen.special_labels or seen.special_inputs:
        return "a special token was chosen; special tokens are never masked, replaced or asked for"
    if seen.chosen and not seen.label_is_original:
        return "a label differs from the token that stood there"
    if seen.outside != IGNORED and p < 1:
        return "places that are not asked for should carry the label -100"
    if seen.outside_changed:
        return f"{seen.outside_changed:.1%} of the tokens were changed without a label"
    if abs(seen.chosen - p) > CHOSEN_BAND or (p in (0, 1) and seen.chosen != p):
        return f"with p = {p:.3g} about {p:.1%} of the ordinary tokens should be chosen, but {seen.chosen:.1%} are"
    if p == 0:
        return None
    shares = {"masked": (seen.masked, 0.8), "replaced": (seen.replaced, 0.1), "kept": (seen.kept, 0.1)}
    for name, (share, wanted) in shares.items():
        if abs(share - wanted) > FATE_BAND:
            return f"of the chosen tokens about {wanted:.0%} should be {name}, but {share:.1%} are"
    if seen.special_replacements:
        return "a token was replaced by a special one; replacements are ordinary tokens"
    if seen.masked - 0.8 > MASKED_DEVIATIONS * math.sqrt(0.8 * 0.2 / seen.asked):
        return f"of {seen.asked:,} chosen tokens {seen.masked:.1%} are masked, more than chance makes of 80 %"
    if seen.variety < FOUND_AMONG:
        return f"only {seen.variety:.1%} of the ordinary ids ever serve as a replacement"
    if p == 1:
        return None
    if seen.same_in_all_rows:
        return "all texts of the batch are masked at the same places"
    if seen.same_number_in_all_rows:
        return "every text has nearly the same number of chosen tokens; each token should have a chance of its own"
    if abs(seen.neighbors - p) > NEIGHBOR_BAND:
        return (
            f"beside a chosen token the next one is chosen in {seen.neighbors:.1%} of all cases; with p = {p:.3g} "
            "and chances of their own it would be about p"
        )
    return None
