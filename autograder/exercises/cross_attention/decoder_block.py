"""Check `DecoderBlock`: three sublayers in their order, the future hidden in one and padding in another."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.cross_attention import CHAPTER
from autograder.exercises.cross_attention.sizes import LOUD, padding, sides, sizes
from autograder.exercises.feed_forward.feed_forward import drawn_state
from autograder.exercises.feed_forward.module import repeatable
from autograder.exercises.multi_head_attention.sizes import layer_state
from autograder.program import Program, build
from course_lib import decoder_block

NORMS = ("norm_1", "norm_2", "norm_3")


def block_state(draw: Draw, d_model: int, d_ff: int) -> dict:
    """Draw the weights of a block; gains and biases of the norms are far from 1 and 0."""
    state = {}
    for layer in ("self_attention", "cross_attention"):
        state |= {f"{layer}.{name}": weight for name, weight in layer_state(draw, d_model).items()}
    state |= {f"ffn.{name}": weight for name, weight in drawn_state(draw, d_model, d_ff).items()}
    return state | draw.state(**{f"{norm}__{part}": (d_model,) for norm in NORMS for part in ("weight", "bias")})


def whole_block(
    draw: Draw, masked: bool = False, gradients: bool = False, twice: bool = False, silent: tuple[str, ...] = ()
) -> Program:
    """Build a block with drawn weights and call it; `silent` names layers that are put to zero."""
    size = sizes(draw)
    d_ff = size.d_model + draw.integer(1, 4)
    state = block_state(draw, size.d_model, d_ff)
    state = {name: torch.zeros_like(weight) if name.startswith(silent) else weight for name, weight in state.items()}
    x, memory = sides(draw, size)
    x, arguments = 2 * x, (memory,)
    if masked:
        mask = padding(draw, size)
        memory[mask] = LOUD
        arguments = (memory, mask)
    program = build(size.d_model, size.heads, d_ff).load(state).call(x, *arguments)
    program = program.call(x, *arguments) if twice else program
    names = ("self_attention.w_q.weight", "cross_attention.w_k.weight", "norm_2.weight", "norm_3.bias")
    return program.gradients(x, *arguments, wrt=(0, 1, *names), weighted=True) if gradients else program


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=decoder_block.DecoderBlock,
    returns=("the result",),
    properties=[repeatable],
    forbids=[
        "torch.nn.TransformerDecoderLayer",
        "course_lib.decoder_block.DecoderBlock",
    ],
    forbids_because="this exercise asks you to put the block together from its parts",
    cases=[
        Case("two calls", lambda draw: whole_block(draw, twice=True)),
        Case("padding in the memory", lambda draw: whole_block(draw, masked=True)),
        Case(
            "sublayers that add nothing",
            lambda draw: whole_block(draw, silent=("self_attention.w_o", "cross_attention.w_o", "ffn.linear_2")),
        ),
        Case("other sizes", lambda draw: whole_block(draw, masked=True), hidden=True),
        Case("gradients", lambda draw: whole_block(draw, gradients=True), hidden=True),
        Case("float64", lambda draw: whole_block(draw, masked=True), hidden=True, dtype="float64"),
    ],
)
