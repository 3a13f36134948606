"""Send each token to one expert: the routing of the Switch transformer, and the loss that keeps it even."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


def switch_route(
    router_logits: Float[Tensor, "token expert"], capacity: int
) -> tuple[Int[Tensor, " token"], Float[Tensor, " token"], Bool[Tensor, " token"]]:
    """Choose for each token the expert of the highest probability; an expert takes the first `capacity` that come.

    Args:
        router_logits: the router's score of every expert.
        capacity: tokens that one expert takes at most.

    Returns:
        expert_index: the chosen expert, the first of several equal ones.
        gate: its probability, softmax(router_logits)[expert_index], which will scale what it answers.
        kept: False where the expert was full.

    Raises:
        ValueError: `capacity` is negative.

    Source: Fedus et al. 2022, §2.1–2.2, eq. 1–3, arXiv 2101.03961. As there, the softmax runs in float32 at least.
    """
    if capacity < 0:
        raise ValueError(f"`capacity` must be at least 0, got {capacity}.")
    expert_index = router_logits.argmax(dim=-1)
    gate = _probabilities(router_logits).gather(-1, expert_index[:, None]).squeeze(-1)
    chosen = F.one_hot(expert_index, router_logits.shape[-1])
    queue = chosen.cumsum(dim=0).gather(-1, expert_index[:, None]).squeeze(-1)  # 1 for an expert's first token
    return expert_index, gate.to(router_logits.dtype), queue <= capacity


def load_balancing_loss(
    router_logits: Float[Tensor, "token expert"], expert_index: Int[Tensor, " token"]
) -> Float[Tensor, ""]:
    """Punish uneven routing: experts · Σ_i f_i P_i, which is 1 when every expert gets an equal part.

    f_i is the share of tokens that were sent to expert i, a count without a gradient. P_i is the mean probability
    that the router gave it, through which the gradient flows. No tokens give 0.

    Raises:
        ValueError: the two count different numbers of tokens.

    Source: Fedus et al. 2022, §2.2, eq. 4–6, arXiv 2101.03961. The paper's factor α is left to the caller.
    """
    tokens, experts = router_logits.shape
    if expert_index.shape != (tokens,):
        raise ValueError(
            f"`expert_index` must name an expert for each of {tokens} tokens, got shape {tuple(expert_index.shape)}."
        )
    probabilities = _probabilities(router_logits)
    sent = torch.bincount(expert_index.long(), minlength=experts).to(probabilities) / max(1, tokens)
    trusted = probabilities.sum(dim=0) / max(1, tokens)
    return (experts * (sent * trusted).sum()).to(router_logits.dtype)


def _probabilities(router_logits: Float[Tensor, "token expert"]) -> Float[Tensor, "token expert"]:
    half = router_logits.dtype in (torch.float16, torch.bfloat16)
    return (router_logits.float() if half else router_logits).softmax(dim=-1)
