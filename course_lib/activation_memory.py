"""Count what a transformer keeps between its forward and its backward pass, by a formula and on a real stack."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from course_lib.allocation import AllocationCounter

LINEAR_TERMS = 34  # bytes per token and feature at two bytes a number: 16 numbers and 2 masks of one byte
MAP_TERMS = 5  # bytes per entry of the maps: weights, a mask of one byte, and what dropout leaves of them
PAPER_ITEMSIZE = 2
FFN_WIDENING = 4


def activation_bytes(
    batch: int,
    sequence: int,
    d_model: int,
    heads: int,
    layers: int,
    checkpointing: bool = False,
    itemsize: int = 2,
) -> float:
    """Count the bytes of the activations that a stack keeps for its backward pass.

    Each layer keeps b·n·d·(34 + 5·h·n/d) bytes at two bytes a number, scaled by itemsize / 2. With `checkpointing` it
    keeps only its input, b·n·d·itemsize, and computes the rest again when it is needed.

    Args:
        batch: sequences.
        sequence: tokens of each.
        d_model: width of the stack.
        heads: each has an n × n map.
        layers: all alike, with d_ff = 4 d_model and dropout in three places.
        checkpointing: keep the input of each layer and nothing else.
        itemsize: bytes of a number.

    Raises:
        ValueError: a size is below 1.

    Source: Korthikanti et al. 2022, eq. 2, arXiv 2205.05198. In the paper masks take one
    byte whatever the numbers take; here everything scales with `itemsize`.
    """
    sizes = {"batch": batch, "sequence": sequence, "d_model": d_model, "heads": heads, "layers": layers}
    for name, size in {**sizes, "itemsize": itemsize}.items():
        if size < 1:
            raise ValueError(f"`{name}` must be at least 1, got {size}.")
    if checkpointing:
        return float(layers * batch * sequence * d_model * itemsize)
    per_token = LINEAR_TERMS * d_model + MAP_TERMS * heads * sequence
    return layers * batch * sequence * per_token * itemsize / PAPER_ITEMSIZE


class DropoutBlock(nn.Module):
    """A pre-norm block as training frameworks build it: dropout on the weights and after both halves, GELU, no fusion.

    Its masks take one byte per entry, as in the paper whose count it is for.

    Source: Korthikanti et al. 2022, §3 and fig. 2, arXiv 2205.05198.
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.heads, self.keep = heads, 1 - dropout
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.w_qkv, self.w_o = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.linear_1 = nn.Linear(d_model, FFN_WIDENING * d_model)
        self.linear_2 = nn.Linear(FFN_WIDENING * d_model, d_model)

    def forward(self, x: Float[Tensor, "batch sequence d_model"]) -> Float[Tensor, "batch sequence d_model"]:
        """Return the new tokens."""
        x = x + self._drop(self.w_o(self._attend(self.norm_1(x))))
        hidden = nn.functional.gelu(self.linear_1(self.norm_2(x)))
        return x + self._drop(self.linear_2(hidden))

    def _attend(self, x: Tensor) -> Tensor:
        batch, sequence, d_model = x.shape
        heads = self.w_qkv(x).view(batch, sequence, 3, self.heads, d_model // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = heads.unbind(0)
        weights = torch.softmax(query @ key.mT * query.shape[-1] ** -0.5, dim=-1)
        return (self._drop(weights) @ value).transpose(1, 2).reshape(x.shape)

    def _drop(self, x: Tensor) -> Tensor:
        mask = torch.empty(x.shape, dtype=torch.bool, device=x.device).bernoulli_(self.keep)
        return x * mask / self.keep


def dropout_stack(d_model: int, heads: int, layers: int, dtype: torch.dtype = torch.bfloat16) -> nn.ModuleList:
    """Make layers without memory, on the meta device, so that a size that fits nowhere can be counted."""
    with torch.device("meta"):
        return nn.ModuleList(DropoutBlock(d_model, heads) for _ in range(layers)).to(dtype)


def run_stack(layers: nn.ModuleList, x: Tensor, every: int | None = None) -> Tensor:
    """Run a stack; with `every`, keep only the input of each group of so many layers, by PyTorch's checkpointing."""
    if every is None:
        for layer in layers:
            x = layer(x)
        return x
    for start in range(0, len(layers), every):
        group = partial(run_stack, nn.ModuleList(layers[start : start + every]))
        x = checkpoint(group, x, use_reentrant=False, preserve_rng_state=False)  # pyright: ignore[reportAssignmentType]
    return x


def counted_activation_bytes(forward: Callable[[Tensor], Tensor], x: Tensor) -> tuple[int, int]:
    """Count what is alive after a forward pass, and the most that is alive until the backward pass has ended.

    The input is counted, the result and the gradients of parameters that exist before are not taken off the peak.

    Args:
        forward: the pass.
        x: the input, which is copied so that its memory is seen.
    """
    with AllocationCounter() as counter:
        start = x.detach().clone().requires_grad_()
        output = forward(start)
        kept = counter.alive - output.nbytes
        output.backward(torch.ones_like(output))
    return kept, counter.peak
