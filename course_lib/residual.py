"""Residual steps: a sublayer adds to what comes in, and where the norm stands decides what the skip path carries.

A sublayer and a norm are any functions from a tensor to a tensor of the same shape, modules included.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

Layer = Callable[[Tensor], Tensor]


def post_norm_step(x: Float[Tensor, "..."], sublayer: Layer, norm: Layer) -> Float[Tensor, "..."]:
    """Add, then normalize: norm(x + sublayer(x)). The skip path goes through the norm too.

    Source: Vaswani et al. 2017, §3.1, arXiv 1706.03762: the original order.
    """
    return norm(x + sublayer(x))


def pre_norm_step(x: Float[Tensor, "..."], sublayer: Layer, norm: Layer) -> Float[Tensor, "..."]:
    """Normalize what the sublayer reads: x + sublayer(norm(x)). The skip path carries x untouched.

    Source: Xiong et al. 2020, fig. 1b, arXiv 2002.04745. The paper has one more norm after the last block of a
    stack; here that is the stack's affair.
    """
    return x + sublayer(norm(x))


def dropout(
    x: Float[Tensor, "..."], p: float, training: bool, generator: torch.Generator | None = None
) -> Float[Tensor, "..."]:
    """Put each entry to 0 with probability `p` and divide the others by 1 - p, while training; else change nothing.

    The division keeps the expected value of every entry, so nothing needs scaling when the model is used.

    Args:
        x: any tensor.
        p: the share that is dropped.
        training: whether the model is being trained.
        generator: where the chances come from; torch's own if None.

    Raises:
        ValueError: `p` lies outside [0, 1). At 1 nothing would be left to scale up.

    Source: Srivastava et al. 2014, §4 and §10, JMLR 15. The paper scales down in use; here, as in the framework, the
    scaling up happens in training ("inverted dropout").
    """
    if not 0 <= p < 1:
        raise ValueError(f"`p` must be at least 0 and below 1, got {p}.")
    if not training or p == 0:
        return x
    kept = torch.rand(x.shape, generator=generator, device=x.device) >= p
    return x * kept / (1 - p)


def gradient_norms(blocks: Sequence[Layer], x: Float[Tensor, "..."]) -> list[float]:
    """Measure how strongly the summed last output feels each block's input: ‖∂ Σ output / ∂ input_k‖ for every k.

    The norm is the Euclidean one over all entries. Gradients of parameters are left as they are.
    """
    inputs: list[Tensor] = []
    with torch.enable_grad():
        flowing = x.detach()
        for block in blocks:
            # A block that ignores its input ends the graph; what follows starts a new one.
            flowing = flowing if flowing.requires_grad else flowing.detach().requires_grad_()
            inputs.append(flowing)
            flowing = block(flowing)
        if not inputs or not flowing.requires_grad:
            return [0.0] * len(inputs)
        gradients = torch.autograd.grad(flowing.sum(), inputs, materialize_grads=True)
    return [torch.linalg.vector_norm(gradient).item() for gradient in gradients]
