"""Let a real module be counted: its parameters, and the FLOPs that PyTorch sees while it runs."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


def counted_parameters(module: nn.Module) -> int:
    """Count the numbers that a module learns, a shared one once."""
    return sum(parameter.numel() for parameter in module.parameters())


def counted_flops(function: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """Count the FLOPs of the matrix products in a call; tensors on the "meta" device cost neither time nor memory.

    The framework's fused attention runs in its plain form meanwhile: the counter does not see into the fused kernel
    of the CPU, and would silently miss the very term that is quadratic in the sequence.
    """
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        function(*args, **kwargs)
    return counter.get_total_flops()


def graph_depth(result: Tensor) -> int:
    """Count the operations on the longest path of the graph that autograd recorded for a tensor.

    Along such a path every operation waits for the one before it, so no number of processors takes fewer steps.

    Raises:
        ValueError: nothing was recorded, since no input asks for a gradient.
    """
    start = result.grad_fn
    if start is None:
        raise ValueError("`result` has no graph: an input or a parameter must have requires_grad=True.")
    depths: dict[Any, int] = {}
    stack: list[tuple[Any, bool]] = [(start, False)]
    while stack:  # a long RNN's path is deeper than Python's recursion
        node, ready = stack.pop()
        inputs = [source for source, _ in node.next_functions if source is not None]
        if ready:
            depths[node] = 1 + max((depths[source] for source in inputs), default=0)
        elif node not in depths:
            stack.append((node, True))
            stack.extend((source, False) for source in inputs if source not in depths)
    return depths[start]
