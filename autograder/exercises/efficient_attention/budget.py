"""What an efficient attention may allocate: nothing as large as the table of all pairs."""

from __future__ import annotations

import math

from autograder.program import Program, Run
from course_lib.memory import bytes_text

ITEMSIZE = 4  # bytes of a float32
LONG = 8192  # tokens at which the sentence says what the table would take


def no_square(program: Program, found: Run) -> str | None:
    """Name the largest tensor that holds as many numbers as the table of all pairs, if one was allocated.

    Axes before the last two of the query are independent problems and do not count. Sizes must be drawn so that no
    honest tensor of an efficient solution is as large as n².
    """
    assert found.counts is not None
    query = program.steps[0].args[0]
    length, problems = query.shape[-2], math.prod(query.shape[:-2])
    tables = [shape for shape in found.counts.shapes if _holds_a_table(shape, length, problems)]
    if not tables:
        return None
    shape = max(tables, key=lambda shape: (math.prod(shape), shape))  # the same one wherever the set comes from
    size = bytes_text(ITEMSIZE * math.prod(shape))
    return (
        f"the values are right, but your code allocated a tensor of shape {shape}, {math.prod(shape):,} numbers or "
        f"{size} in float32, for {length} tokens. That is a table of all pairs, n × n; at n = {LONG:,} one such table "
        f"takes {bytes_text(ITEMSIZE * LONG**2)}, and here no tensor may grow with n²"
    )


def _holds_a_table(shape: tuple[int, ...], length: int, problems: int) -> bool:
    square = len(shape) >= 2 and min(shape[-2:]) >= length
    return square or math.prod(shape) >= problems * length**2
