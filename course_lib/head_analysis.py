"""Look at heads one by one: what each adds, how alike they are, and what is lost without it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from course_lib.multi_head import MultiHeadAttention


def head_similarity(weights: Float[Tensor, "batch heads query key"]) -> Float[Tensor, "heads heads"]:
    """Compare the attention maps of every pair of heads: the cosine of the flattened maps, averaged over the batch.

    similarity_ij = mean over the batch of map_i · map_j / (|map_i| |map_j|)

    Weights are never negative and every row sums to 1, so even unrelated heads score far above 0. Take a baseline
    away first, such as `uniform_weights`, to see what the heads share beyond it.
    """
    maps = torch.nn.functional.normalize(weights.flatten(-2), dim=-1)
    return (maps @ maps.mT).mean(dim=0)


def uniform_weights(hidden: Bool[Tensor, "query key"]) -> Float[Tensor, "query key"]:
    """Share every query's attention evenly over the keys that it may see; True in `hidden` hides.

    A query that sees nothing has weights 0.
    """
    visible = (~hidden).to(torch.get_default_dtype())
    return visible / visible.sum(dim=-1, keepdim=True).clamp(min=1)


def head_contributions(
    attention: MultiHeadAttention, heads: Float[Tensor, "batch heads sequence d_head"]
) -> Float[Tensor, "batch heads sequence d_model"]:
    """Write the output as a sum over heads: contribution_i = head_i w_o_i, with the rows of w_o that head i meets.

    Concat(head_1 … head_h) w_o = Σ_i head_i w_o_i, so the contributions and the output's bias sum to the output.

    Source: Elhage et al. 2021, "Attention heads are independent and additive", transformer-circuits.pub.
    """
    rows = attention.w_o.weight.T.unflatten(0, (attention.num_heads, attention.d_head))
    return heads @ rows


@contextmanager
def without_heads(attention: MultiHeadAttention, heads: Iterable[int]) -> Iterator[None]:
    """Silence heads inside the block: what they found is 0 when it reaches the output projection.

    Raises:
        ValueError: there is no such head.

    Source: Michel et al. 2019, §2.3, eq. 2, arXiv 1905.10650.
    """
    silent = sorted(set(heads))
    if any(not 0 <= head < attention.num_heads for head in silent):
        raise ValueError(f"`heads` must lie in 0 … {attention.num_heads - 1}, got {silent}.")
    kept = torch.ones(attention.num_heads, 1)
    kept[silent] = 0

    def silence(_module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        merged = inputs[0].unflatten(-1, (attention.num_heads, attention.d_head))
        return ((merged * kept.to(merged)).flatten(-2),)

    handle = attention.w_o.register_forward_pre_hook(silence)
    try:
        yield
    finally:
        handle.remove()
