"""Draw the weights and inputs of a whole block."""

import torch

from autograder.draw import Draw
from autograder.exercises.feed_forward.feed_forward import drawn_state
from autograder.exercises.multi_head_attention.sizes import HEADS, layer_state
from autograder.program import Program, build


def block_state(draw: Draw, d_model: int, d_ff: int) -> dict:
    """Draw the weights of a block; gains and biases of the norms are far from 1 and 0."""
    state = {f"attention.{name}": weight for name, weight in layer_state(draw, d_model).items()}
    state |= {f"ffn.{name}": weight for name, weight in drawn_state(draw, d_model, d_ff).items()}
    norms = {"norm_1__weight": (d_model,), "norm_1__bias": (d_model,)}
    norms |= {"norm_2__weight": (d_model,), "norm_2__bias": (d_model,)}
    return state | draw.state(**norms)


def whole_block(
    draw: Draw,
    masked: bool = False,
    gradients: bool = False,
    twice: bool = False,
    silent: tuple[str, ...] = (),
    **options: object,
) -> Program:
    """Build a block with drawn weights and call it; `silent` names layers that are put to zero."""
    batch, sequence, d_head, wider = (int(size) for size in draw.random.permutation([2, 4, 5, 7]))
    d_model = HEADS * d_head
    state = block_state(draw, d_model, d_model + wider)
    state = {name: torch.zeros_like(weight) if name.startswith(silent) else weight for name, weight in state.items()}
    x = draw.normal(batch, sequence, d_model, scale=2.0)
    arguments = (x, draw.mask(sequence, sequence)) if masked else (x,)
    program = build(d_model, HEADS, d_model + wider, **options).load(state).call(*arguments)
    program = program.call(*arguments) if twice else program
    names = ("attention.w_q.weight", "ffn.linear_1.weight", "norm_1.weight", "norm_2.bias")
    return program.gradients(*arguments, wrt=(0, *names)) if gradients else program


def padding_mask(draw: Draw) -> Program:
    """Hide the last tokens of each batch row, with a mask of 4 axes given by name."""
    program = whole_block(draw)
    build_step, load_step, call_step = program.steps
    (x,) = call_step.args
    mask = torch.zeros(len(x), 1, 1, x.shape[1], dtype=torch.bool)
    mask[0, ..., -1] = True
    return Program((build_step, load_step)).call(x, mask=mask)
