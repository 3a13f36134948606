"""Check `normalization_axes`: batch, layer and instance norm are one function over different axes."""

from __future__ import annotations

from typing import Any

from autograder.exercise import Case, Exercise
from autograder.exercises.norms_and_residuals import CHAPTER
from autograder.program import Program, Run, call
from autograder.values import Raised, describe, shortened
from course_lib import normalization

AXIS_NAMES = ("batch", "sequence", "feature")
AXES = len(AXIS_NAMES)


def as_set(outcome: Any) -> frozenset[int] | None:
    """Read axes in any order, counted from either end; None for what is no tuple of axes."""
    if not isinstance(outcome, (tuple, list)):
        return None
    numbers = [axis.item() if getattr(axis, "ndim", None) == 0 else axis for axis in outcome]
    if not all(type(axis) is int and -AXES <= axis < AXES for axis in numbers):
        return None
    places = [axis % AXES for axis in numbers]
    return frozenset(places) if len(set(places)) == len(places) else None


def named(axes: frozenset[int]) -> str:
    """Name axes in words."""
    return " and ".join(AXIS_NAMES[axis] for axis in sorted(axes)) or "no axis"


def right_axes(program: Program, found: Run) -> str | None:
    """Compare as sets of axes."""
    outcome, kind = found.outcomes[0], program.steps[0].args[0]
    axes = as_set(outcome)
    if axes is None:
        wanted = f"a tuple of different axes between {-AXES} and {AXES - 1}, such as (0, 2)"
        shown = shortened(repr(outcome)) if isinstance(outcome, (tuple, list, int)) else describe(outcome)
        return f"expected {wanted}, but the result is {shown}"
    if axes == frozenset(normalization.normalization_axes(kind)):
        return None
    kept = frozenset(range(AXES)) - axes
    return f"for {kind!r} you average over {named(axes)}, which leaves one mean for each {named(kept)}"


def same_axes(program: Program, first: Run, second: Run) -> bool:
    """Tell whether two answers name the same wrong axes, in whatever form."""
    one, other = (run.outcomes[0] for run in (first, second))
    if isinstance(one, Raised) or isinstance(other, Raised):
        return one == other
    return as_set(one) is not None and as_set(one) == as_set(other)


def case(kind: str) -> Case:
    """Ask for one kind."""
    return Case(f"{kind} norm", lambda draw: call(kind), judge=right_axes, alike=same_axes)


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=normalization.normalization_axes,
    returns=("the axes",),
    cases=[
        case("batch"),
        case("layer"),
        case("instance"),
        Case("a kind that is not one of the three", lambda draw: call("group"), hidden=True),
        Case("a kind that only begins like one", lambda draw: call("layers"), hidden=True),
        Case("no kind at all", lambda draw: call(""), hidden=True),
    ],
)


def _axes(kind: str, **axes: tuple[int, ...]) -> tuple[int, ...]:
    if kind not in axes:
        raise ValueError(f"`kind` must be batch, layer or instance, got {kind!r}.")
    return axes[kind]


@exercise.misconception("""
    This follows the table of document B, which gives "Batch × Features" for batch norm and "Features" for both others.
    A mean over features mixes numbers of different meaning, and batch norm never does that: it keeps one mean per
    feature. And if layer and instance norm had the same axis, they would be the same norm.
""")
def axes_of_document_b(kind):
    return _axes(kind, batch=(0, 2), layer=(2,), instance=(2,))


@exercise.misconception("""
    Batch norm is right, but your instance norm has the axis of layer norm (document B's table says so as well).
    Instance norm keeps one mean for each example and each feature. Which axis is left to average over?
""")
def instance_over_features(kind):
    return _axes(kind, batch=(0, 1), layer=(2,), instance=(2,))


@exercise.misconception("""
    Your batch norm keeps a mean for each position of the sequence. It has one per feature: positions and examples
    together are its sample, as rows and columns of an image are in a convolutional network.
""")
def batch_axis_alone(kind):
    return _axes(kind, batch=(0,), layer=(2,), instance=(1,))


@exercise.misconception("""
    Your layer norm averages over the sequence, as document A's formula does; that is instance norm. In layer norm a
    token needs nobody else: which axis holds the features of one token?
""")
def layer_over_the_sequence(kind):
    return _axes(kind, batch=(0, 1), layer=(1,), instance=(1,))


@exercise.misconception("""
    Layer and instance norm have changed places. Layer norm is the one in which a token needs nobody else; instance
    norm compares the places of one example, feature by feature.
""")
def layer_and_instance_exchanged(kind):
    return _axes(kind, batch=(0, 1), layer=(1,), instance=(2,))


@exercise.misconception("""
    Your layer norm takes one mean for a whole example. That is its form for images; in transformers each token has its
    own. What would happen to the first token when the last one changes?
""")
def layer_over_the_whole_example(kind):
    return _axes(kind, batch=(0, 1), layer=(1, 2), instance=(1,))


@exercise.misconception("""
    You return the axes that are kept. The exercise asks for those over which mean and variance are taken, to be passed
    to `x.mean(axis=...)`: they are the ones that disappear.
""")
def axes_that_are_kept(kind):
    return _axes(kind, batch=(2,), layer=(0, 1), instance=(0, 2))


@exercise.misconception("""
    The first axis alone is your batch norm, and the others follow one each. Three axes, three norms: a nice pattern,
    but batch norm has one mean per feature, so everything else is averaged over.
""")
def one_axis_each(kind):
    return _axes(kind, batch=(0,), layer=(1,), instance=(2,))


@exercise.misconception("""
    The three kinds are right. For any other `kind` raise a `ValueError` that names it: a misspelled norm should not
    pass in silence as another one.
""")
def unknown_kind_passes_as_layer(kind):
    return {"batch": (0, 1), "instance": (1,)}.get(kind, (2,))


@exercise.misconception("""
    The three kinds are right. For any other `kind` you raise a KeyError, the dictionary's own; say it as a
    `ValueError` that names the argument and what it may be.
""")
def unknown_kind_raises_key_error(kind):
    return {"batch": (0, 1), "layer": (2,), "instance": (1,)}[kind]


@exercise.misconception("""
    The three kinds are right. For any other `kind` your function ends without a return, so the answer is None, and the
    mistake shows only much later. Raise a `ValueError` that names the argument.
""")
def unknown_kind_gives_none(kind):
    return {"batch": (0, 1), "layer": (2,), "instance": (1,)}.get(kind)


@exercise.alternative
def counted_from_the_end(kind):
    if kind == "batch":
        return (-3, -2)
    if kind == "layer":
        return (-1,)
    if kind == "instance":
        return (-2,)
    raise ValueError(kind)


@exercise.alternative
def in_another_order_as_a_list(kind):
    found = {"batch": [1, 0], "layer": [2], "instance": [-2]}.get(kind)
    if found is None:
        raise ValueError(f"unknown kind {kind}")
    return found


@exercise.alternative
def by_what_is_kept(kind):
    kept = {"batch": {2}, "layer": {0, 1}, "instance": {0, 2}}
    match kind:
        case "batch" | "layer" | "instance":
            return tuple({0, 1, 2} - kept[kind])
        case _:
            raise ValueError("batch, layer or instance")


@exercise.alternative
def from_a_table_of_indices(kind):
    names = ["batch", "layer", "instance"]
    return ((0, -2), (-1,), (1,))[names.index(kind)]  # index raises ValueError by itself
