"""Layers that several processes compute together: tensor, pipeline, expert and data parallel, forward and backward.

Every function is called in all processes with the same arguments, takes its own share of the work by its rank, and
tells what it got and what it sent.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.training.distributed_worker import Link
from course_lib.training.parallel import expert_dispatch


@dataclass(frozen=True)
class Report:
    """What one process computed, and its traffic.

    Args:
        output: Of the layer, as far as this process has it.
        gradients: By name, as far as this process has them.
        calls: How often each operation of the link ran.
        tensor_bytes: Bytes of the tensors that the operations were given.
        received: Bytes that the operating system saw arrive; None where it does not tell.
        held: Numbers of the layer's weights that this process held.
    """

    output: Tensor | None
    gradients: dict[str, Tensor] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    tensor_bytes: dict[str, int] = field(default_factory=dict)
    received: int | None = None
    held: int = 0


class _EnterShards(torch.autograd.Function):
    """Hand the same input to every shard; on the way back sum what the shards say about it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, link: Link) -> Tensor:
        ctx.link = link
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return ctx.link.all_reduce(grads[0]), None


class _LeaveShards(torch.autograd.Function):
    """Sum what the shards computed; on the way back every shard gets the whole gradient."""

    @staticmethod
    def forward(ctx: Any, partial: Tensor, link: Link) -> Tensor:
        return link.all_reduce(partial)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0], None


def tensor_parallel_ffn(
    link: Link,
    x: Float[Tensor, "batch sequence d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
) -> Report:
    """Run gelu(x w_1) w_2 and its backward pass (of the summed squares / 2) with d_ff shared among the processes.

    Source: Shoeybi et al. 2019, §3, fig. 3a, arXiv 1909.08053.
    """
    before = _start(link)
    own = w_1.shape[1] // link.count
    columns = w_1[:, link.rank * own : (link.rank + 1) * own].clone().requires_grad_()
    rows = w_2[link.rank * own : (link.rank + 1) * own].clone().requires_grad_()
    x = x.clone().requires_grad_()
    output = _LeaveShards.apply(F.gelu(_EnterShards.apply(x, link) @ columns) @ rows, link)
    (output.square().sum() / 2).backward()
    gradients = {"x": x.grad, "w_1": columns.grad, "w_2": rows.grad}
    return _report(link, before, output, gradients, columns.numel() + rows.numel())


def tensor_parallel_attention(
    link: Link, x: Float[Tensor, "batch sequence d_model"], weights: dict[str, Tensor], num_heads: int
) -> Report:
    """Run multi-head attention without biases, and its backward pass, with the heads shared among the processes.

    Args:
        link: to the other processes.
        x: tokens.
        weights: `w_q`, `w_k`, `w_v`, `w_o`, each (d_model, d_model), acting from the right.
        num_heads: of all processes together.

    Source: Shoeybi et al. 2019, §3, fig. 3b, arXiv 1909.08053.
    """
    before = _start(link)
    width = x.shape[-1] // link.count
    part = slice(link.rank * width, (link.rank + 1) * width)
    own = {name: weights[name][:, part].clone().requires_grad_() for name in ("w_q", "w_k", "w_v")}
    own["w_o"] = weights["w_o"][part].clone().requires_grad_()
    x = x.clone().requires_grad_()
    entered = _EnterShards.apply(x, link)
    query, key, value = (
        (entered @ own[name]).unflatten(-1, (num_heads // link.count, -1)).transpose(1, 2)
        for name in ("w_q", "w_k", "w_v")
    )
    attended = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
    output = _LeaveShards.apply(attended @ own["w_o"], link)
    (output.square().sum() / 2).backward()
    gradients = {"x": x.grad, **{name: weight.grad for name, weight in own.items()}}
    return _report(link, before, output, gradients, sum(weight.numel() for weight in own.values()))


def pipeline_parallel(
    link: Link,
    x: Float[Tensor, "batch sequence d_model"],
    stages: list[tuple[Tensor, Tensor]],
    microbatches: int,
) -> Report:
    """Run a stack, one residual layer x + gelu(x w_1) w_2 per process, forward and backward by microbatches.

    All forward passes go first, then all backward passes, of the summed squares / 2.

    Source: Huang et al. 2019, §2.2, fig. 2c, arXiv 1811.06965.
    """
    before = _start(link)
    w_1, w_2 = (weight.clone().requires_grad_() for weight in stages[link.rank])
    first, last = link.rank == 0, link.rank == link.count - 1
    entered: list[Tensor] = []
    left: list[Tensor] = []
    for chunk in x.chunk(microbatches):
        arrived = chunk.clone() if first else link.receive(tuple(chunk.shape), link.rank - 1, chunk.dtype)
        entered.append(arrived.requires_grad_())
        left.append(arrived + F.gelu(arrived @ w_1) @ w_2)
        if not last:
            link.send(left[-1], link.rank + 1)
    for arrived, departed in zip(entered, left, strict=True):
        shape, dtype = tuple(departed.shape), departed.dtype
        grad = departed.detach() if last else link.receive(shape, link.rank + 1, dtype)  # of the squares / 2
        departed.backward(grad)
        if not first and arrived.grad is not None:
            link.send(arrived.grad, link.rank - 1)
    gradients = {"w_1": w_1.grad, "w_2": w_2.grad}
    if first:
        gradients["x"] = torch.cat([arrived.grad for arrived in entered if arrived.grad is not None])
    output = torch.cat(left).detach() if last else None
    return _report(link, before, output, gradients, w_1.numel() + w_2.numel())


def expert_parallel(
    link: Link,
    x: Float[Tensor, "tokens d_model"],
    expert_index: Int[Tensor, " tokens"],
    experts: list[tuple[Tensor, Tensor]],
) -> Report:
    """Run every token through its expert relu(x w_1) w_2; tokens and experts are both shared among the processes.

    Tokens travel to the process of their expert, and the results back: two all-to-alls.

    Source: Lepikhin et al. 2020, §3.3, arXiv 2006.16668; Fedus et al. 2022, §2.2, arXiv 2101.03961.
    """
    before = _start(link)
    tokens, each = len(x) // link.count, len(experts) // link.count
    mine = slice(link.rank * tokens, (link.rank + 1) * tokens)
    grouped, restore = expert_dispatch(x[mine], expert_index[mine], len(experts))
    counts = expert_index[mine].bincount(minlength=len(experts)).view(link.count, each)
    heard = link.exchange_counts(counts)  # of each process, tokens for each expert that lives here
    sent, expected = counts.sum(1).tolist(), heard.sum(1).tolist()
    arrived = link.all_to_all(grouped, sent, expected)
    # What came is sorted by process, then by expert; each expert wants all of its tokens at once.
    local = torch.arange(each).repeat(link.count).repeat_interleave(heard.flatten())
    results = torch.empty_like(arrived)
    for number in range(each):
        w_1, w_2 = experts[link.rank * each + number]
        results[local == number] = F.relu(arrived[local == number] @ w_1) @ w_2
    output = link.all_to_all(results, expected, sent)[restore]
    held = sum(weight.numel() for pair in experts[link.rank * each : (link.rank + 1) * each] for weight in pair)
    return _report(link, before, output, {}, held)


def data_parallel(link: Link, x: Float[Tensor, "batch d_in"], weight: Float[Tensor, "d_in d_out"]) -> Report:
    """Compute the gradient of the mean over a batch of |x weight|² / 2, with the batch shared among the processes."""
    before = _start(link)
    own = weight.clone().requires_grad_()
    share = x.chunk(link.count)[link.rank]
    ((share @ own).square().sum() / 2 / len(x)).backward()
    assert own.grad is not None
    return _report(link, before, None, {"weight": link.all_reduce(own.grad)}, own.numel())


def in_turn(link: Link, layer: Callable[..., Report], calls: Sequence[tuple[Any, ...]]) -> list[Report]:
    """Run one parallel layer several times in the same processes: once for each tuple of arguments."""
    return [layer(link, *args) for args in calls]


def in_one_process(layer: str, *args: Any) -> tuple[Tensor, dict[str, Tensor]]:
    """Compute what a parallel layer should give, without any of its tricks: the output and the gradients.

    Args:
        layer: "ffn", "attention", "pipeline" or "experts".
        args: those of the parallel layer, the link left out.

    Raises:
        ValueError: `layer` is another word.
    """
    if layer not in _WHOLE:
        raise ValueError(f"`layer` must be one of {', '.join(map(repr, _WHOLE))}, got {layer!r}.")
    return _WHOLE[layer](*args)


def _whole_ffn(x: Tensor, w_1: Tensor, w_2: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    x, w_1, w_2 = (tensor.clone().requires_grad_() for tensor in (x, w_1, w_2))
    return _finish(F.gelu(x @ w_1) @ w_2, {"x": x, "w_1": w_1, "w_2": w_2})


def _whole_attention(x: Tensor, weights: dict[str, Tensor], num_heads: int) -> tuple[Tensor, dict[str, Tensor]]:
    x = x.clone().requires_grad_()
    own = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
    query, key, value = (
        (x @ own[name]).unflatten(-1, (num_heads, -1)).transpose(1, 2) for name in ("w_q", "w_k", "w_v")
    )
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    attended = (torch.softmax(scores, dim=-1) @ value).transpose(1, 2).flatten(2)
    return _finish(attended @ own["w_o"], {"x": x, **own})


def _whole_pipeline(x: Tensor, stages: list[tuple[Tensor, Tensor]], _: int = 1) -> tuple[Tensor, dict[str, Tensor]]:
    x = x.clone().requires_grad_()
    sources, tokens = {"x": x}, x
    for number, pair in enumerate(stages):
        w_1, w_2 = (weight.clone().requires_grad_() for weight in pair)
        sources |= {f"w_1 of stage {number}": w_1, f"w_2 of stage {number}": w_2}
        tokens = tokens + F.gelu(tokens @ w_1) @ w_2
    return _finish(tokens, sources)


def _whole_experts(
    x: Tensor, expert_index: Tensor, experts: list[tuple[Tensor, Tensor]]
) -> tuple[Tensor, dict[str, Tensor]]:
    rows = [F.relu(x[i] @ experts[int(e)][0]) @ experts[int(e)][1] for i, e in enumerate(expert_index)]
    return torch.stack(rows), {}


_WHOLE = {"ffn": _whole_ffn, "attention": _whole_attention, "pipeline": _whole_pipeline, "experts": _whole_experts}


def _finish(output: Tensor, sources: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    (output.square().sum() / 2).backward()
    return output.detach(), {name: source.grad for name, source in sources.items() if source.grad is not None}


def _start(link: Link) -> int | None:
    link.calls.clear()
    link.tensor_bytes.clear()
    link.wait_for_all()
    return link.received_bytes()


def _report(link: Link, before: int | None, output: Tensor | None, gradients: dict[str, Any], held: int) -> Report:
    after = link.received_bytes()
    received = after - before if after is not None and before is not None else None
    plain = {name: grad.detach() for name, grad in gradients.items()}
    return Report(
        None if output is None else output.detach(), plain, dict(link.calls), dict(link.tensor_bytes), received, held
    )
