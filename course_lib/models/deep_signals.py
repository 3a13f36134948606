"""What happens to tokens and gradients on their way through a fresh stack: size, variety, and what flows back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from course_lib.models.deep_reverser import DeepReverser
from course_lib.residual import Layer, gradient_norms

LENGTH, D_MODEL = 8, 32


@dataclass(frozen=True)
class Signals:
    """One number for the input of every block, and one for the output of the last.

    Args:
        gradients: ‖∂ readout / ∂ stream‖, relative to that at the readout itself.
        sizes: root mean square of the stream.
        varieties: share of the stream that is not common to all tokens, ‖X - mean of tokens‖ / ‖X‖.
    """

    gradients: tuple[float, ...]
    sizes: tuple[float, ...]
    varieties: tuple[float, ...]


def measure_signals(kind: str, num_layers: int, factor: float = 1.0, seed: int = 0) -> Signals:
    """Send random digits through a fresh stack, whose weight matrices are all multiplied by `factor`.

    The readout weighs every entry of the result at random. A plain sum would not do: what a layer norm puts out has
    mean 0, so its sum is constant and has no gradient.

    Source: Xiong et al. 2020, §3, arXiv 2002.04745, for gradients; Dong et al. 2021, §2, arXiv 2103.03404, for the
    residual of the tokens. The paper takes a composite norm; here it is the Euclidean one.
    """
    model, tokens = fresh_stack(kind, num_layers, factor, seed)
    stream = model.embed(tokens).detach()
    direction = torch.randn(stream.shape, generator=torch.Generator().manual_seed(seed))
    blocks: list[Layer] = [*model.blocks, lambda x: model.final_norm(x) * direction]
    reference = torch.linalg.vector_norm(direction).item()
    gradients = tuple(norm / reference for norm in gradient_norms(blocks, stream))
    passing = [stream]
    with torch.no_grad():
        for block in model.blocks:
            passing.append(block(passing[-1]))
    sizes = tuple(x.square().mean().sqrt().item() for x in passing)
    return Signals(gradients, sizes, tuple(variety(x) for x in passing))


def variety(x: Tensor) -> float:
    """Measure which share of the tokens is not common to all of them: 0 when all are equal."""
    own = x - x.mean(dim=-2, keepdim=True)
    return (torch.linalg.vector_norm(own) / torch.linalg.vector_norm(x)).item()


def identity_share(kind: str, num_layers: int, seed: int = 0) -> float:
    """Measure how much of the input reaches the output of a fresh stack as it is: trace(∂ output / ∂ input) / size.

    The final norm of a pre-norm stack is left out, as it belongs to no block.

    Source: He et al. 2016, *Identity Mappings in Deep Residual Networks*, §2, eq. 5, arXiv 1603.05027.
    """
    model, tokens = fresh_stack(kind, num_layers, 1.0, seed)
    stream = model.embed(tokens).detach()
    jacobian = torch.func.jacrev(nn.Sequential(*model.blocks))(stream)
    square = jacobian.reshape(stream.numel(), stream.numel())
    return (square.trace() / stream.numel()).item()


def fresh_stack(kind: str, num_layers: int, factor: float, seed: int) -> tuple[DeepReverser, Tensor]:
    """Build a stack and one string of different digits, always the same for the same seed."""
    with _seeded(seed), torch.no_grad():
        model = DeepReverser(LENGTH, kind, num_layers, D_MODEL)
        for module in model.blocks.modules():
            if isinstance(module, nn.Linear):
                module.weight.mul_(factor)
        tokens = torch.randperm(model.digits.num_embeddings)[None, :LENGTH]
    return model.requires_grad_(False), tokens


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Draw from a seed without disturbing torch's own generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
