"""Check `SwitchFeedForward`: each token through one expert, scaled by its gate, and no more than there is room for."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.variants import CHAPTER
from autograder.exercises.variants.switch_forms import ACCEPTED_FORMS
from autograder.program import Program, Run, build
from course_lib.models import switch

BATCH, SEQUENCE, D_MODEL, D_FF, EXPERTS = 2, 9, 4, 6, 3  # all differ; 18 tokens, so that capacities are whole or not
ROOMY = 3.0  # the capacity factor at which one expert could take every token
FAVORITE = 6.0  # added to the router's score of one expert


def state(draw: Draw, experts: int = EXPERTS) -> dict[str, torch.Tensor]:
    """Draw a router and experts; biases are far from 0, so that an expert answers something even to nothing."""
    shapes: dict[str, tuple[int, ...]] = {"router__weight": (experts, D_MODEL)}
    for number in range(experts):
        shapes |= {
            f"experts__{number}__linear_1__weight": (D_FF, D_MODEL),
            f"experts__{number}__linear_1__bias": (D_FF,),
            f"experts__{number}__linear_2__weight": (D_MODEL, D_FF),
            f"experts__{number}__linear_2__bias": (D_MODEL,),
        }
    weights = draw.state(**shapes)
    weights["router.weight"] = 3 * weights["router.weight"]
    return weights


def tokens(draw: Draw, *axes: int) -> torch.Tensor:
    """Draw tokens."""
    return draw.normal(*(axes or (BATCH, SEQUENCE)), D_MODEL, scale=2.0)


def layer(draw: Draw, factor: float, twice: bool = False) -> Program:
    """Build a layer with drawn weights and call it."""
    x = tokens(draw)
    program = build(D_MODEL, D_FF, EXPERTS, factor).load(state(draw)).call(x)
    return program.call(tokens(draw, 1, 5)) if twice else program


def rush(draw: Draw, factor: float = 1.0) -> Program:
    """Send nearly all tokens to one expert, with room for a part of them."""
    x, weights = tokens(draw), state(draw)
    x[..., 0] = x[..., 0].abs() + 1
    weights["router.weight"][1] = 0
    weights["router.weight"][1, 0] = FAVORITE
    return build(D_MODEL, D_FF, EXPERTS, factor).load(weights).call(x)


def gradients(draw: Draw) -> Program:
    """Ask for gradients of tokens, router and an expert."""
    x = tokens(draw)
    names = ("router.weight", "experts.0.linear_1.weight", "experts.2.linear_2.bias")
    return build(D_MODEL, D_FF, EXPERTS, ROOMY).load(state(draw)).gradients(x, wrt=(0, *names), weighted=True)


def counted(draw: Draw) -> Program:
    """Count the tensors of a pass in which an expert has room for a third of the tokens."""
    return layer(draw, 1.0).counting()


def each_token_once(program: Program, found: Run) -> str | None:
    """Refuse a hidden layer over all tokens."""
    assert found.counts is not None
    whole = ((BATCH * SEQUENCE, D_FF), (BATCH, SEQUENCE, D_FF), (EXPERTS, BATCH * SEQUENCE, D_FF))
    if not any(found.counts.allocated_ending_in(*shape) for shape in whole):
        return None
    return f"an expert worked on all {BATCH * SEQUENCE} tokens; it should see those alone that the router sends to it"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=switch.SwitchFeedForward,
    returns=("the result",),
    forbids=["course_lib.models.switch.SwitchFeedForward"],
    forbids_because="this exercise asks you to build the layer",
    cases=[
        Case("room for all", lambda draw: layer(draw, ROOMY)),
        Case("capacity factor 1, two calls", lambda draw: layer(draw, 1.0, twice=True)),
        Case("a rush on one expert", rush),
        Case("gradients", gradients),
        Case("each expert sees its own tokens", counted, limit=each_token_once),
        Case("a capacity that is no whole number", lambda draw: layer(draw, 0.7), hidden=True),
        Case("a rush with little room", lambda draw: rush(draw, 0.4), hidden=True),
        Case("float64", lambda draw: layer(draw, 0.5), hidden=True, dtype="float64"),
    ],
)

for form in ACCEPTED_FORMS:
    exercise.alternative(form)
