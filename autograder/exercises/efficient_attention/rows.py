"""Say about a pattern which query sees the wrong keys."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.exercises.masking.properties import boolean

__all__ = ["boolean", "first_wrong_row"]
MOST_NAMED = 8  # keys that a sentence lists


def first_wrong_row(mask: Tensor, length: int, visible: Callable[[int, int], bool]) -> str | None:
    """Give a sentence about the first query of a square mask that sees the wrong keys."""
    if mask.dtype != torch.bool or mask.shape != (length, length):
        return None
    for i, row in enumerate(mask.tolist()):
        wanted = [j for j in range(length) if visible(i, j)]
        seen = [j for j, hidden in enumerate(row) if not hidden]
        if seen != wanted:
            return f"query {i} should see {keys_text(wanted)}, but it sees {keys_text(seen)}"
    return None


def keys_text(places: list[int]) -> str:
    """List keys, or count them where they are many."""
    if not places:
        return "no key"
    if len(places) > MOST_NAMED:
        return f"{len(places)} keys"
    return f"key{'s' * (len(places) > 1)} {', '.join(map(str, places))}"
