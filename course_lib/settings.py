"""Decide how much work a long cell does: all of it for a reader, a taste of it for a grader."""

import os

# nbgrader sets the first one while it validates or grades; the second one is for anyone in a hurry.
QUICK_VARIABLES = ("NBGRADER_EXECUTION", "COURSE_QUICK")


def quick() -> bool:
    """Say whether long cells should shorten: one of the variables is set, to neither nothing nor 0."""
    return any(os.environ.get(name, "").strip() not in ("", "0") for name in QUICK_VARIABLES)


def steps(full: int, short: int) -> int:
    """Choose the number of steps of a training cell: `full` for a reader, `short` in a quick run.

    Raises:
        ValueError: a count is negative, or `short` exceeds `full`, so that quick runs would take longer.
    """
    if not 0 <= short <= full:
        raise ValueError(f"steps needs 0 <= short <= full; got full={full} and short={short}.")
    return short if quick() else full
