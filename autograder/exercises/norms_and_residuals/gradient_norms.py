"""Check `gradient_norms`: how strongly the last output feels each block's input."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.norms_and_residuals import CHAPTER
from autograder.program import Program, call
from autograder.values import Named
from course_lib import residual

SINGLE_PRECISION = 1e-4  # the numbers come from float32 tensors


class LinearStep(nn.Module):
    """Add a bent linear map to the input, as a residual step does."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the step."""
        return x + torch.tanh(self.linear(x))


def triple(x: Tensor) -> Tensor:
    """Multiply by 3, so that the gradient's factor is known."""
    return 3 * x


NAMED = {"linear": nn.Linear, "step": LinearStep, "tanh": torch.tanh, "triple": triple}


def changing_widths(draw: Draw, leading: int = 1) -> Program:
    """Draw blocks between layers of different widths, so that no two inputs have the same shape."""
    *lead, first, second, third = draw.sizes(leading + 3, low=2, high=9)
    blocks = [_linear(draw, first, second), Named("tanh"), _linear(draw, second, third), Named("triple")]
    return call(blocks, draw.normal(*lead, first))


def equal_widths(draw: Draw) -> Program:
    """Draw residual steps of one width, as in a transformer."""
    batch, width = draw.sizes(2, low=3)
    blocks = [_residual(draw, width) for _ in range(draw.integer(3, 5))]
    return call(blocks, draw.normal(batch, width))


def one_block(draw: Draw) -> Program:
    """Draw a stack of one block."""
    first, second = draw.sizes(2)
    return call([_linear(draw, first, second)], draw.normal(4, first))


def deep(draw: Draw) -> Program:
    """Draw a deep stack of steps and of bends that shrink the gradient."""
    width = draw.integer(3, 6)
    blocks = [block for _ in range(10) for block in (_linear(draw, width, width), Named("tanh"))]
    return call(blocks, draw.normal(3, 2, width))


def _linear(draw: Draw, first: int, second: int) -> Named:
    return Named("linear", (first, second), {"weight": draw.normal(second, first), "bias": draw.normal(second)})


def _residual(draw: Draw, width: int) -> Named:
    state = {"linear.weight": draw.normal(width, width), "linear.bias": draw.normal(width)}
    return Named("step", (width,), state)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=residual.gradient_norms,
    returns=("the norms",),
    named=NAMED,
    tolerance=SINGLE_PRECISION,
    cases=[
        Case("blocks of changing widths", changing_widths),
        Case("residual steps", equal_widths),
        Case("one block", one_block),
        Case("a batch", lambda draw: changing_widths(draw, leading=2), hidden=True),
        Case("more residual steps", equal_widths, hidden=True),
        Case("twenty blocks", deep, hidden=True, dtype="float64"),
        Case("float64", changing_widths, hidden=True, dtype="float64"),
    ],
)


def _forward(blocks, x: Tensor) -> list[Tensor]:
    """Give the input, and then the output of every block."""
    flowing = [x.detach().clone().requires_grad_()]
    for block in blocks:
        flowing.append(block(flowing[-1]))
    return flowing


def _gradients(blocks, x: Tensor) -> list[Tensor]:
    flowing = _forward(blocks, x)
    return list(torch.autograd.grad(flowing[-1].sum(), flowing[:-1]))


@exercise.misconception("""
    Your list belongs to the blocks' outputs: it is moved by one place, its last entry is the gradient of a sum by
    itself, all ones, and the one for the stack's own input is missing.
""")
def norms_of_the_outputs(blocks, x):
    flowing = _forward(blocks, x)
    return [gradient.norm().item() for gradient in torch.autograd.grad(flowing[-1].sum(), flowing[1:])]


@exercise.misconception("""
    Your list has one entry too many: the last one belongs to the stack's output, which is no block's input.
""")
def output_counted_too(blocks, x):
    flowing = _forward(blocks, x)
    return [gradient.norm().item() for gradient in torch.autograd.grad(flowing[-1].sum(), flowing)]


@exercise.misconception("""
    Your list runs from the last block to the first, as the gradient does. Return it in the order of the blocks.
""")
def from_last_to_first(blocks, x):
    return [gradient.norm().item() for gradient in reversed(_gradients(blocks, x))]


@exercise.misconception("""
    Your numbers are the squares of the norms: the root of the sum of squares is missing.
""")
def root_forgotten(blocks, x):
    return [gradient.pow(2).sum().item() for gradient in _gradients(blocks, x)]


@exercise.misconception("""
    You add up absolute values. The norm here is the Euclidean one: the root of the sum of squares over all entries.
""")
def sum_of_absolute_values(blocks, x):
    return [gradient.abs().sum().item() for gradient in _gradients(blocks, x)]


@exercise.misconception("""
    You take the largest entry of each gradient. The norm here is the Euclidean one, over all entries.
""")
def largest_entry(blocks, x):
    return [gradient.abs().max().item() for gradient in _gradients(blocks, x)]


@exercise.misconception("""
    You take the root of the mean square of each gradient, not of the sum: your numbers do not grow with the number of
    entries. A norm adds up.
""")
def root_mean_square(blocks, x):
    return [gradient.pow(2).mean().sqrt().item() for gradient in _gradients(blocks, x)]


@exercise.misconception("""
    You take the norm of each token's gradient and average those. The norm here runs over all entries at once.
""")
def mean_over_tokens(blocks, x):
    return [gradient.norm(dim=-1).mean().item() for gradient in _gradients(blocks, x)]


@exercise.misconception("""
    Your gradients are those of the mean of the last output: all of them are smaller by the number of its entries. The
    exercise asks for the sum.
""")
def of_the_mean(blocks, x):
    flowing = _forward(blocks, x)
    return [gradient.norm().item() for gradient in torch.autograd.grad(flowing[-1].mean(), flowing[:-1])]


@exercise.misconception("""
    You measure each block by itself: the gradient of its own summed output. The chain rule is what you came to see, so
    keep the graph from the first input to the last output and differentiate only the last.
""")
def each_block_by_itself(blocks, x):
    norms = []
    for block in blocks:
        x = x.detach().requires_grad_()
        output = block(x)
        norms.append(torch.autograd.grad(output.sum(), x)[0].norm().item())
        x = output
    return norms


@exercise.misconception("""
    You differentiate the sum of all blocks' outputs, so every input also feels the blocks in between directly. Only
    the last output counts.
""")
def of_all_outputs(blocks, x):
    flowing = _forward(blocks, x)
    total = torch.stack([output.sum() for output in flowing[1:]]).sum()
    return [gradient.norm().item() for gradient in torch.autograd.grad(total, flowing[:-1])]


@exercise.misconception("""
    These are the sizes of the inputs themselves. The question is how strongly the last output feels each of them: the
    size of a gradient.
""")
def norms_of_the_inputs(blocks, x):
    return [flowing.norm().item() for flowing in _forward(blocks, x)[:-1]]


@exercise.misconception("""
    Your gradients add up from call to call: each backward pass adds to `.grad`, which you did not clear. Run one
    backward pass for all blocks, or use `torch.autograd.grad`, which leaves `.grad` alone.
""")
def accumulated(blocks, x):
    flowing = _forward(blocks, x)
    for tensor in flowing[:-1]:
        tensor.retain_grad()
    norms = []
    for tensor in flowing[:-1]:
        flowing[-1].sum().backward(retain_graph=True)
        norms.append(torch.linalg.vector_norm(tensor.grad).item())
    return norms


@exercise.misconception("""
    You return only the first block's number. The exercise asks for one per block: the list is the curve over depth.
""")
def the_first_only(blocks, x):
    return _gradients(blocks, x)[0].norm().item()


@exercise.alternative
def by_retained_gradients(blocks, x):
    inputs, flowing = [], x.clone().requires_grad_()
    for block in blocks:
        if not flowing.is_leaf:
            flowing.retain_grad()
        inputs.append(flowing)
        flowing = block(flowing)
    flowing.sum().backward()
    return [float(tensor.grad.norm()) for tensor in inputs]


@exercise.alternative
def from_the_end_by_vector_products(blocks, x):
    inputs = [x]
    with torch.no_grad():
        for block in blocks:
            inputs.append(block(inputs[-1]))
    gradient, norms = torch.ones_like(inputs[-1]), []
    for block, before in zip(reversed(blocks), reversed(inputs[:-1]), strict=True):
        gradient = torch.func.vjp(block, before)[1](gradient)[0]
        norms.append(torch.linalg.vector_norm(gradient).item())
    return norms[::-1]


@exercise.alternative
def one_differentiation_per_block(blocks, x):
    norms = []
    for _ in blocks:
        flowing = start = x.detach().requires_grad_()
        for block in blocks[len(norms) :]:
            flowing = block(flowing)
        norms.append(torch.autograd.grad(flowing.sum(), start)[0].pow(2).sum().sqrt().item())
        x = blocks[len(norms) - 1](x).detach()
    return tuple(norms)


@exercise.alternative
def by_hooks(blocks, x):
    norms = [0.0] * len(blocks)
    flowing = x.detach().clone().requires_grad_()
    for index, block in enumerate(blocks):
        flowing.register_hook(lambda gradient, index=index: norms.__setitem__(index, gradient.norm().item()))
        flowing = block(flowing)
    flowing.sum().backward()
    return norms
