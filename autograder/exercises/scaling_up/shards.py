"""What the two exercises on sharded layers look at beside the values: who multiplied what, and who asked for a sum."""

import torch

from autograder.compare import same
from autograder.program import Program, Run


def shapes_of(found: Run) -> frozenset[tuple[int, ...]]:
    """Give the shapes of all tensors that a counted run allocated."""
    return found.counts.shapes if found.counts else frozenset()


def whole_output_made(program: Program, found: Run) -> bool:
    """Tell whether a tensor of the size of the unsharded output was allocated."""
    x, weight = program.steps[0].args[:2]
    rows, width = x.numel() // x.shape[-1], weight.shape[1]
    return any(shape[-1:] == (width,) and torch.Size(shape).numel() == rows * width for shape in shapes_of(found))


def same_calls(program: Program, ours: Run, theirs: Run) -> bool:
    """Tell whether two runs agree in their results, in their calls and in what they gathered."""
    weight = program.steps[0].args[1]
    gathered = [any(shape[-1:] == (weight.shape[0],) for shape in shapes_of(run)) for run in (ours, theirs)]
    pairs = zip(ours.outcomes, theirs.outcomes, strict=True)
    return ours.calls == theirs.calls and gathered[0] == gathered[1] and all(same(a, b) for a, b in pairs)
