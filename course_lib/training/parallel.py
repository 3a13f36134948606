"""Share one layer among several devices: columns, then rows, then one sum; and tokens among experts.

A shard is the part of a weight that one device holds. Tokens are rows and a weight acts as `x @ weight`, so columns of
a weight make features of the output, and rows of a weight take features of the input.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor


def column_parallel(
    x: Float[Tensor, "*batch d_in"], weight: Float[Tensor, "d_in d_out"], shards: int
) -> list[Float[Tensor, "*batch shard"]]:
    """Multiply by the columns of a weight, a block of them per device: x @ [W_1 | W_2 | …] = [x W_1 | x W_2 | …].

    Every device needs all of `x` and makes its own features; nothing is sent.

    Raises:
        ValueError: `shards` is below 1 or does not divide d_out.

    Source: Shoeybi et al. 2019, §3, eq. 3, arXiv 1909.08053.
    """
    width = weight.shape[1]
    if shards < 1 or width % shards:
        raise ValueError(f"`shards` must divide the {width} columns of `weight`, got {shards}.")
    return [x @ columns for columns in weight.split(width // shards, dim=1)]


def row_parallel(
    xs: Sequence[Float[Tensor, "*batch shard"]],
    weight: Float[Tensor, "d_in d_out"],
    all_reduce: Callable[[list[Tensor]], Tensor],
) -> Float[Tensor, "*batch d_out"]:
    """Multiply features that are spread over devices by the rows that belong to them, then sum: Σ x_i W_i.

    Args:
        xs: one block of features per device, in order.
        weight: its rows are cut as the features are.
        all_reduce: takes one tensor per device and returns their sum, which every device then has. It is called once.

    Raises:
        ValueError: the features of all devices together are not the rows of `weight`.

    Source: Shoeybi et al. 2019, §3, arXiv 1909.08053.
    """
    widths = [x.shape[-1] for x in xs]
    if sum(widths) != weight.shape[0]:
        raise ValueError(f"`xs` has {sum(widths)} features in all; `weight` has {weight.shape[0]} rows.")
    return all_reduce([x @ rows for x, rows in zip(xs, weight.split(widths, dim=0), strict=True)])


def all_reduce(parts: Any) -> Tensor:
    """Sum one tensor per device, as the devices do together; here in one process.

    Raises:
        TypeError: `parts` is not a list of tensors.
        ValueError: there is none, or their shapes differ.
    """
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, Tensor) for part in parts):
        raise TypeError(f"`all_reduce` takes a list with one tensor per device, got {type(parts).__name__}.")
    shapes = {tuple(part.shape) for part in parts}
    if len(shapes) != 1:
        raise ValueError(f"`all_reduce` needs tensors of one shape, got {sorted(shapes) or 'none'}.")
    return torch.stack(list(parts)).sum(0)


def ring_all_reduce_seconds(num_bytes: float, workers: int, latency: float, bandwidth: float) -> float:
    """Estimate an all-reduce around a ring: 2 (p - 1) messages one after another, each of 1/p of the tensor.

    seconds = 2 (p - 1) (latency + num_bytes / (p · bandwidth))

    Args:
        num_bytes: of the tensor that every worker has.
        workers: p, in a ring.
        latency: seconds before a message's first byte arrives.
        bandwidth: bytes per second from one worker to the next.

    Raises:
        ValueError: `workers` is below 1 or `bandwidth` is not positive.

    Source: Thakur, Rabenseifner and Gropp 2005, §4, "Optimization of Collective Communication Operations in MPICH";
    Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations".
    """
    if workers < 1:
        raise ValueError(f"`workers` must be at least 1, got {workers}.")
    if not bandwidth > 0:
        raise ValueError(f"`bandwidth` must be above 0 bytes per second, got {bandwidth}.")
    return 2 * (workers - 1) * (latency + num_bytes / (workers * bandwidth))


def ring_all_reduce_bytes(num_bytes: float, workers: int) -> float:
    """Count the bytes that each worker sends in an all-reduce around a ring: 2 (p - 1) / p · num_bytes.

    Raises:
        ValueError: `workers` is below 1.
    """
    if workers < 1:
        raise ValueError(f"`workers` must be at least 1, got {workers}.")
    return 2 * (workers - 1) / workers * num_bytes


def expert_dispatch(
    x: Float[Tensor, "tokens d_model"], expert_index: Int[Tensor, " choices"], num_experts: int
) -> tuple[Float[Tensor, "tokens d_model"], Int[Tensor, " tokens"]]:
    """Put the tokens of each expert side by side, expert 0 first; tell how to bring the results back.

    grouped = x[order], and grouped[restore] is x again. Devices exchange the groups: an all-to-all.

    Raises:
        ValueError: an index names no expert, or there is not one index per token.

    Source: Shazeer et al. 2017, §3.1, arXiv 1701.06538; Lepikhin et al. 2020, §3, arXiv 2006.16668, which pads every
    group to a capacity; here the groups have the lengths that they have.
    """
    if len(expert_index) != len(x):
        raise ValueError(f"`expert_index` has {len(expert_index)} entries for {len(x)} tokens.")
    if len(x) and not 0 <= int(expert_index.min()) <= int(expert_index.max()) < num_experts:
        raise ValueError(f"`expert_index` must lie between 0 and {num_experts - 1}.")
    order = torch.argsort(expert_index, stable=True)
    restore = torch.empty_like(order)
    restore[order] = torch.arange(len(order))
    return x[order], restore
