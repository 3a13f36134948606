"""Judge sentence pairs by what they say and how often: honest draws differ."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from autograder.compare import difference
from autograder.program import Program, Run
from autograder.values import Opaque, Raised

PAIRS = 300  # neighbors in all documents of a case: half of them is 150 with a standard deviation of 9
SHARE_BAND = 0.16  # more than five standard deviations of the share that is next
RANDOM_BAND = 0.16  # the same, for the share of random sentences that come from the pair's own document


@dataclass(frozen=True)
class Pairs:
    """What can be read from pairs, whatever was drawn."""

    count: int
    crossing: int
    next_share: float
    truthful: bool
    own_document: float
    wrong_flag: bool
    places: int
    runs: bool

    def like(self, other: Pairs) -> bool:
        """Tell whether two lists follow one rule."""
        same = (self.count, self.crossing > 0, self.truthful, self.wrong_flag, self.runs) == (
            other.count,
            other.crossing > 0,
            other.truthful,
            other.wrong_flag,
            other.runs,
        )
        near = abs(self.next_share - other.next_share) < SHARE_BAND
        return (
            same
            and near
            and abs(self.own_document - other.own_document) < RANDOM_BAND
            and ((self.places <= 2) == (other.places <= 2))
        )


def read(documents: list[list[str]], pairs: list[Any]) -> Pairs:
    """Find out what kind of pairs these are; sentences are all different."""
    where = {text: (number, place) for number, document in enumerate(documents) for place, text in enumerate(document)}
    crossing = truthful = flagged = own = strangers = 0
    seconds, flags = set(), []
    for first, second, is_next in pairs:
        (document, place), (other, found) = where[first], where[second]
        follows = (other, found) == (document, place + 1)
        crossing += place == len(documents[document]) - 1
        flagged += bool(is_next)
        truthful += follows == bool(is_next)
        flags.append(bool(is_next))
        if not follows:
            strangers += 1
            own += other == document
            seconds.add(found)
    count = max(1, len(pairs))
    changes = sum(one != other for one, other in itertools.pairwise(flags)) if flags else 0
    return Pairs(
        count=len(pairs),
        crossing=crossing,
        next_share=flagged / count,
        truthful=truthful == len(pairs),
        own_document=own / max(1, strangers),
        wrong_flag=truthful < len(pairs) / 2,
        places=len(seconds),
        runs=changes > 0.9 * count or changes < 0.1 * count,
    )


def honest(program: Program, found: Run) -> str | None:
    """Judge pairs, and what equal and different generators do to them."""
    documents = program.steps[0].args[0]
    for outcome in found.outcomes:
        sentence = _form(documents, outcome) or _kind(documents, read(documents, outcome))
        if sentence:
            return sentence
    return _generators(program, found)


def same_belief(program: Program, first: Run, second: Run) -> bool:
    """Tell whether two runs follow one rule, although they drew different pairs."""
    documents = program.steps[0].args[0]
    pairs = list(zip(first.outcomes, second.outcomes, strict=True))
    if any(_form(documents, outcome) for pair in pairs for outcome in pair):
        return all(isinstance(one, Raised) and one == other for one, other in pairs)
    repeats = [_generators(program, run) for run in (first, second)]
    return repeats[0] == repeats[1] and all(read(documents, a).like(read(documents, b)) for a, b in pairs)


def _form(documents: list[list[str]], outcome: Any) -> str | None:
    """Give a sentence when the outcome is no list of (text, text, boolean)."""
    if not isinstance(outcome, (list, tuple)) or isinstance(outcome, Raised):
        if isinstance(outcome, Opaque) and "generator" in outcome.type_name:
            return "expected a list of pairs, but it is a generator; wrap it in list(…)"
        return difference([], outcome, "the result") or "expected a list of pairs"
    known = {text for document in documents for text in document}
    for index, item in enumerate(outcome):
        if not isinstance(item, (list, tuple)) or len(item) != 3:
            return f"entry {index} should be a triple (first, second, is_next)"
        if any(text not in known for text in item[:2] if isinstance(text, str)) or not all(
            isinstance(text, str) for text in item[:2]
        ):
            return f"entry {index} should begin with two sentences of the documents"
        if not _boolean(item[2]):
            return f"the last part of entry {index} should be True or False, but it is {item[2]!r}"
    return None


def _boolean(value: Any) -> bool:
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b" or value in (0, 1)


def _kind(documents: list[list[str]], seen: Pairs) -> str | None:
    wanted = sum(max(0, len(document) - 1) for document in documents)
    if seen.crossing:
        return f"{seen.crossing} pairs begin with the last sentence of a document, which has no successor there"
    if seen.count != wanted:
        return f"there are {wanted} pairs of neighbors, and each should give one pair, but you return {seen.count}"
    if not seen.truthful:
        kind = "are the wrong way round" if seen.wrong_flag else "do not tell the truth"
        return f"the flags {kind}: `is_next` should be True exactly where the second sentence follows the first"
    if seen.own_document > 0:
        return f"{seen.own_document:.0%} of the random sentences come from the first sentence's own document"
    if abs(seen.next_share - 1 / 2) > SHARE_BAND:
        return f"about half of the pairs should be true neighbors, but {seen.next_share:.0%} are"
    if seen.runs:
        return "true and random pairs come in a fixed order: each pair needs a coin of its own"
    if seen.places <= 2:
        return "the random sentences are always the same few; draw among all sentences of the other documents"
    return None


def _generators(program: Program, found: Run) -> str | None:
    first, second = (step.args[1] for step in program.steps[:2])
    equal = [tuple(item) for item in found.outcomes[0]] == [tuple(item) for item in found.outcomes[1]]
    if first == second and not equal:
        return "two calls with equal generators give different pairs"
    if first != second and equal:
        return "two calls with different generators give the very same pairs"
    return None
