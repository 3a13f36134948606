"""Check `clip_gradients`: one factor for all gradients."""

import math

import torch
from torch import nn

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.training_in_practice import CHAPTER
from autograder.program import Program, call
from autograder.values import Named
from course_lib.training import clipping

SHAPES = ((3, 5), (5,), (2, 3, 4), (7,))
ALLOWED = 1e9  # longer than any gradient here


class Layers:
    """Parameters whose gradients are given, as after a backward pass; None stands for a parameter without one."""

    def __init__(self, *gradients: torch.Tensor | None) -> None:
        self.listed = []
        for gradient in gradients:
            parameter = nn.Parameter(torch.ones(2) if gradient is None else torch.ones_like(gradient))
            parameter.grad = gradient
            self.listed.append(parameter)

    @property
    def walked(self):
        """Give the parameters one by one and only once, as `model.parameters()` does."""
        return (parameter for parameter in self.listed)

    @property
    def gradients(self) -> list[torch.Tensor | None]:
        """Give the gradients as they are now."""
        return [parameter.grad for parameter in self.listed]


def drawn(draw: Draw, share: float, form: str = "listed", without: int = 0) -> Program:
    """Draw gradients of very different lengths and allow a share of the length of all."""
    gradients = [draw.normal(*shape, scale=scale) for shape, scale in zip(SHAPES, (9.0, 0.5, 2.0, 0.05), strict=True)]
    total = math.sqrt(sum(gradient.double().square().sum().item() for gradient in gradients))
    layers = (*gradients[:2], *(None,) * without, *gradients[2:])
    return call(Named("Layers", layers, part=form), share * total).see(
        Named("Layers", layers, part="gradients"), "the gradients afterwards"
    )


def nothing_to_clip(draw: Draw) -> Program:
    """Give parameters without any gradient."""
    return call(Named("Layers", (None, None), part="listed"), draw.number(0.5, 2.0))


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=clipping.clip_gradients,
    tolerance={"float32": 2e-4, "float64": 1e-5, "float16": 1e-2},  # the framework adds 1e-6 to the length
    forbids=(
        "torch.nn.utils.clip_grad_norm_",
        "torch.nn.utils.clip_grad_norm",
        "torch.nn.utils.clip_grads_with_norm_",
        "torch.nn.utils.get_total_norm",
        "torch.nn.utils.clip_grad_value_",
    ),
    forbids_because="this exercise asks you to measure the length and scale the gradients yourself",
    named={"Layers": Layers},
    cases=[
        Case("gradients twice too long", lambda draw: drawn(draw, 0.5)),
        Case("gradients short enough", lambda draw: drawn(draw, 3.0)),
        Case("parameters from a generator", lambda draw: drawn(draw, 0.3, form="walked")),
        Case("a parameter without a gradient", lambda draw: drawn(draw, 0.6, without=1), hidden=True),
        Case("far too long, float64", lambda draw: drawn(draw, 0.01), hidden=True, dtype="float64"),
        Case("just short enough", lambda draw: drawn(draw, 1.2), hidden=True, dtype="float64"),
        Case("no gradient at all", nothing_to_clip, hidden=True),
    ],
)


def _gradients(parameters):
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def _length(gradients):
    return math.sqrt(sum(gradient.double().square().sum().item() for gradient in gradients))


def _scale(gradients, factor):
    for gradient in gradients:
        gradient.mul_(factor)


@exercise.misconception("""
    You clip every parameter's gradient on its own. That turns the whole gradient: its long parts are cut, its short
    ones are not, so the step no longer goes downhill most steeply. One length for all of them together, and one factor.
""")
def each_on_its_own(parameters, max_norm):
    gradients = _gradients(parameters)
    total = _length(gradients)
    for gradient in gradients:
        own = _length([gradient])
        if own > max_norm:
            gradient.mul_(max_norm / own)
    return total


@exercise.misconception("""
    You cut off single entries at ±max_norm. That turns the gradient. Clipping by **norm** keeps its direction: all
    entries are multiplied by the same factor.
""")
def by_value(parameters, max_norm):
    gradients = _gradients(parameters)
    total = _length(gradients)
    for gradient in gradients:
        gradient.clamp_(-max_norm, max_norm)
    return total


@exercise.misconception("""
    You always scale to `max_norm`, also gradients that were short enough, and so make them longer. Near the end of a
    training that would blow small gradients up. When should the factor be 1?
""")
def always_scales(parameters, max_norm):
    gradients = _gradients(parameters)
    total = _length(gradients)
    _scale(gradients, max_norm / total if total else 1.0)
    return total


@exercise.misconception("""
    You add the lengths of the gradients. The length of all of them together is the root of the sum of their
    **squares**, as if they were one long vector.
""")
def sum_of_lengths(parameters, max_norm):
    gradients = _gradients(parameters)
    total = sum(_length([gradient]) for gradient in gradients)
    if total > max_norm:
        _scale(gradients, max_norm / total)
    return float(total)


@exercise.misconception("""
    You take the longest of the gradients as the length. All of them count: the root of the sum of their squares.
""")
def longest_of_all(parameters, max_norm):
    gradients = _gradients(parameters)
    total = max((_length([gradient]) for gradient in gradients), default=0.0)
    if total > max_norm:
        _scale(gradients, max_norm / total)
    return total


@exercise.misconception("""
    You forgot the root: what you return, and compare with `max_norm`, is the square of the length.
""")
def no_root(parameters, max_norm):
    gradients = _gradients(parameters)
    total = _length(gradients) ** 2
    if total > max_norm:
        _scale(gradients, max_norm / total)
    return total


@exercise.misconception("""
    The number you return is right, but the gradients are as long as before. New tensors were made and the old ones
    kept: change them in place, for example with `mul_`, or assign to `parameter.grad`.
""")
def gradients_not_changed(parameters, max_norm):
    return _length(_gradients(parameters))


@exercise.misconception("""
    You return the length **after** clipping, which is never above `max_norm` and tells nothing. The length before is
    what belongs into a log: it shows when something went wrong.
""")
def returns_the_length_after(parameters, max_norm):
    gradients = _gradients(parameters)
    total = _length(gradients)
    _scale(gradients, min(1.0, max_norm / total) if total else 1.0)
    return min(total, max_norm)


@exercise.misconception("""
    With a list of parameters all is well, but `model.parameters()` is a generator: it can be walked through only
    once. After your loop for the length nothing was left for the loop that scales. Make a list first.
""")
def walks_twice(parameters, max_norm):
    total = _length(_gradients(parameters))
    if total > max_norm:
        _scale(_gradients(parameters), max_norm / total)
    return total


@exercise.misconception("""
    You measure the length of the **weights**. What is clipped is how they should change: `parameter.grad`.
""")
def length_of_weights(parameters, max_norm):
    parameters = list(parameters)
    total = _length([parameter.detach() for parameter in parameters])
    if total > max_norm:
        _scale(_gradients(parameters), max_norm / total)
    return total


@exercise.misconception("""
    A parameter that took no part in the loss has no gradient: its `.grad` is None. Pass such parameters over.
""")
def every_parameter_has_one(parameters, max_norm):
    gradients = [parameter.grad for parameter in parameters]
    total = math.sqrt(sum(gradient.double().square().sum().item() for gradient in gradients))
    if total > max_norm:
        _scale(gradients, max_norm / total)
    return total


@exercise.alternative
def as_one_long_vector(parameters, max_norm):
    parameters = [parameter for parameter in parameters if parameter.grad is not None]
    if not parameters:
        return 0.0
    total = torch.cat([parameter.grad.flatten() for parameter in parameters]).norm()
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for parameter in parameters:
        parameter.grad = parameter.grad * factor
    return total


@exercise.alternative
def norm_of_norms(parameters, max_norm):
    parameters = list(parameters)
    norms = [parameter.grad.norm(2) for parameter in parameters if parameter.grad is not None]
    total = torch.stack(norms).norm().item() if norms else 0.0
    if total > max_norm:
        with torch.no_grad():
            for parameter in parameters:
                if parameter.grad is not None:
                    parameter.grad /= total / max_norm
    return total


@exercise.alternative
def by_copying_into_place(parameters, max_norm):
    gradients = [parameter.grad.data for parameter in parameters if parameter.grad is not None]
    total = sum(float((gradient**2).sum()) for gradient in gradients) ** 0.5
    factor = min(1.0, max_norm / (total or 1.0))
    for gradient in gradients:
        gradient.copy_(gradient * factor)
    return total
