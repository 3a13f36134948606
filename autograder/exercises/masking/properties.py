"""What holds for every right mask, whatever its form."""

from __future__ import annotations

import torch

from autograder.program import Program, Run


def boolean(program: Program, found: Run) -> str | None:
    """Give a sentence when a mask is not boolean."""
    mask = found.outcomes[0]
    if mask.dtype == torch.bool:
        return None
    dtype = str(mask.dtype).removeprefix("torch.")
    return (
        f"your mask has the dtype {dtype}, but a mask of this course is boolean (True hides): numbers mean one thing "
        "in one library and the opposite in another"
    )


def hides_exactly_the_future(program: Program, found: Run) -> str | None:
    """Give a sentence about the first query of a causal mask that sees the wrong keys."""
    mask = found.outcomes[0]
    n_q, n_k = mask.shape
    for query in range(n_q):
        place = query + n_k - n_q
        visible = [key for key in range(n_k) if not mask[query, key]]
        if visible != list(range(place + 1)):
            return (
                f"query {query} stands at place {place} of {n_k}, so it should see "
                f"{_keys(list(range(place + 1)))}, but in your mask it sees {_keys(visible)}"
            )
    return None


def _keys(places: list[int]) -> str:
    if not places:
        return "no key"
    word = "key" if len(places) == 1 else "the keys"
    return f"{word} {', '.join(map(str, places))}"
