"""How many stages and microbatches the exercises on pipelines are asked about."""

from autograder.draw import Draw
from autograder.program import Program, call


def two_counts(draw: Draw, most: int) -> Program:
    """Draw two counts that differ."""
    stages, microbatches = draw.sizes(2, low=3, high=most)
    return call(stages, microbatches)


def one_stage(draw: Draw) -> Program:
    """Draw microbatches for a single stage, which waits for nobody."""
    return call(1, draw.integer(3, 9))


def one_microbatch(draw: Draw) -> Program:
    """Draw stages for a single microbatch, for which all others wait."""
    return call(draw.integer(3, 9), 1)
