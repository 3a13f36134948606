"""Judge a sampler by how often each token comes: different honest draws give different tokens."""

from __future__ import annotations

import math
from typing import Any

from autograder.compare import difference
from autograder.program import Program, Run
from autograder.values import Raised

DRAWS = 200  # calls with a generator of their own; behind them stand calls whose generators are equal
EQUAL = 12
DEVIATIONS = 6  # a count further from its mean, in standard deviations, comes once in many millions
SURELY_SEEN = 12  # a token that one run drew so often is left out by another of the same rule once in many thousands
UNLIKE = 35  # chi-squared of two rows of counts; one rule gives more once in two millions (4 degrees of freedom)


def chances(logits: list[float], temperature: float, top_k: int | None, top_p: float | None) -> list[float]:
    """Work out every token's chance, one by one; the temperature is above 0."""
    highest = max(logits)
    ranked = sorted(range(len(logits)), key=lambda token: -logits[token])[: top_k or len(logits)]
    weights = {token: math.exp((logits[token] - highest) / temperature) for token in ranked}
    total, reached, kept = sum(weights.values()), 0.0, []
    for token in ranked:
        if top_p is None or reached < top_p:
            kept.append(token)
        reached += weights[token] / total
    total = sum(weights[token] for token in kept)
    return [weights[token] / total if token in kept else 0.0 for token in range(len(logits))]


def settings(program: Program) -> tuple[list[float], float, int | None, float | None]:
    """Read what the sampler was asked for."""
    step = program.steps[0]
    named = step.kwargs
    return step.args[0].tolist(), named.get("temperature", 1.0), named.get("top_k"), named.get("top_p")


def drawn_as_asked(program: Program, found: Run) -> str | None:
    """Judge the tokens of many calls, and those of calls with equal generators."""
    logits = settings(program)[0]
    for outcome in found.outcomes:
        token = _token(outcome)
        if token is None:
            return difference(0, outcome, "the token")
        if not 0 <= token < len(logits):
            return f"the token should be an id from 0 to {len(logits) - 1}, but it is {token}"
    counts, wanted = _counts(found, len(logits)), chances(*settings(program))
    for token, (count, chance) in enumerate(zip(counts, wanted, strict=True)):
        if count and not chance:
            return f"token {token} was drawn {count} times in {DRAWS}, but it is not among those that may be drawn"
    for token, (count, chance) in enumerate(zip(counts, wanted, strict=True)):
        if abs(count - DRAWS * chance) > DEVIATIONS * math.sqrt(DRAWS * chance * (1 - chance)) + 1e-9:
            return (
                f"token {token} should be drawn about {DRAWS * chance:.0f} times in {DRAWS} (its chance is "
                f"{chance:.1%}), but it was drawn {count} times"
            )
    return _repeats(found)


def same_belief(program: Program, first: Run, second: Run) -> bool:
    """Tell whether two samplers draw by one rule, although their draws differ."""
    tokens = [_token(outcome) for run in (first, second) for outcome in run.outcomes]
    read = [token for token in tokens if token is not None]
    if len(read) < len(tokens):
        pairs = zip(first.outcomes, second.outcomes, strict=True)
        return all(type(a) is type(b) and (not isinstance(a, Raised) or a == b) for a, b in pairs)
    size = 1 + max(read)
    if (_repeats(first) is None) != (_repeats(second) is None):
        return False
    counts = list(zip(_counts(first, size), _counts(second, size), strict=True))
    if any(min(pair) == 0 and max(pair) >= SURELY_SEEN for pair in counts):
        return False
    return sum((mine - theirs) ** 2 / max(1, mine + theirs) for mine, theirs in counts) < UNLIKE


def _token(outcome: Any) -> int | None:
    """Give a whole number, also where it is wrapped as a scalar; None for anything else."""
    if getattr(outcome, "ndim", None) == 0:
        outcome = outcome.item()
    return outcome if isinstance(outcome, int) and not isinstance(outcome, bool) else None


def _counts(found: Run, size: int) -> list[int]:
    tokens = [_token(outcome) for outcome in found.outcomes[:DRAWS]]
    return [tokens.count(token) for token in range(size)]


def _repeats(found: Run) -> str | None:
    if len({_token(outcome) for outcome in found.outcomes[DRAWS:]}) > 1:
        return "calls with equal generators draw different tokens"
    return None
