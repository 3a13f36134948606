"""Fixed sparse patterns as masks, where True hides, and how far information travels through layers of them."""

import torch
from jaxtyping import Bool
from torch import Tensor


def sliding_window_mask(length: int, window: int, causal: bool = True) -> Bool[Tensor, "token token"]:
    """Hide what is `window` tokens away or more: a causal window looks back only, the other one to both sides.

    Visible are 0 ≤ i - j < window (causal: the token itself and the `window` - 1 before it), or |i - j| < window.

    Raises:
        ValueError: `window` is below 1.

    Source: Beltagy et al. 2020, §3.1, arXiv 2004.05150. The paper's window of w counts w / 2 tokens on each side;
    here `window` - 1 on each side that is seen, beside the token itself.
    """
    _require_least("window", window, 1)
    distance = _distances(length)
    far = distance.abs() >= window
    return far | (distance < 0) if causal else far


def strided_mask(length: int, stride: int) -> Bool[Tensor, "token token"]:
    """Show the last `stride` tokens and, before them, every `stride`-th: i - j < stride or (i - j) mod stride = 0.

    Raises:
        ValueError: `stride` is below 1.

    Source: Child et al. 2019, §4.3, "strided" attention, arXiv 1904.10509. In the paper two heads share the two
    sets between them; here one mask holds both.
    """
    _require_least("stride", stride, 1)
    distance = _distances(length)
    return (distance < 0) | ((distance >= stride) & (distance % stride != 0))


def longformer_mask(length: int, window: int, global_places: list[int]) -> Bool[Tensor, "token token"]:
    """Show a window to both sides, and some places to everyone, who in turn see everything.

    Raises:
        ValueError: `window` is below 1, or a place lies outside the sequence.

    Source: Beltagy et al. 2020, §3.1, "Global Attention", arXiv 2004.05150. The paper gives global places
    projections of their own; a mask cannot show that.
    """
    outside = [place for place in global_places if not 0 <= place < length]
    if outside:
        raise ValueError(f"`global_places` must lie in 0 … {length - 1}, got {outside}.")
    mask = sliding_window_mask(length, window, causal=False)
    mask[global_places, :] = False
    mask[:, global_places] = False
    return mask


def bigbird_mask(
    length: int, window: int, num_global: int, num_random: int, generator: torch.Generator | None = None
) -> Bool[Tensor, "token token"]:
    """Show a window, the first tokens to and from everyone, and to every other token some keys drawn at random.

    A row has min(num_random, what is left) further keys, drawn without replacement among those that window and
    global tokens leave hidden.

    Raises:
        ValueError: `window` is below 1, a number is negative, or there are more global tokens than tokens.

    Source: Zaheer et al. 2020, §2, arXiv 2007.14062. The paper draws whole blocks of keys; here single ones.
    """
    _require_least("num_global", num_global, 0)
    _require_least("num_random", num_random, 0)
    if num_global > length:
        raise ValueError(f"`num_global` is {num_global}, but there are only {length} tokens.")
    mask = longformer_mask(length, window, list(range(num_global)))
    for row in mask[num_global:]:
        hidden = row.nonzero().squeeze(-1)
        order = torch.randperm(len(hidden), generator=generator)
        row[hidden[order[:num_random]]] = False
    return mask


def receptive_field(mask: Bool[Tensor, "token token"], layers: int) -> Bool[Tensor, "token token"]:
    """Tell which inputs reach which outputs through a number of layers: [i, j] is True if output i depends on j.

    Output i of the last layer depends on j if some k is visible to i and depends on j one layer below: a product of
    boolean matrices. There is no residual path: a token that does not see itself forgets itself.

    Raises:
        ValueError: the mask is not square, or `layers` is negative.
    """
    if mask.ndim != 2 or mask.shape[0] != mask.shape[1]:
        raise ValueError(f"`mask` must be square, (token, token); got shape {tuple(mask.shape)}.")
    _require_least("layers", layers, 0)
    visible = (~mask).float()
    reached = torch.eye(len(mask), device=mask.device)
    for _ in range(layers):
        reached = (visible @ reached > 0).float()  # counts of paths would overflow
    return reached.bool()


def layers_to_full(mask: Bool[Tensor, "token token"], wanted: Bool[Tensor, "token token"] | None = None) -> int | None:
    """Count the layers until every output depends on every input that it should, or None if that never happens.

    Args:
        mask: the pattern of every layer; True hides.
        wanted: which output should depend on which input; all on all if not given.
    """
    wanted = torch.ones_like(mask) if wanted is None else wanted
    seen: list[Tensor] = []
    field = receptive_field(mask, 0)
    while not any(torch.equal(field, earlier) for earlier in seen):
        if bool((field | ~wanted).all()):
            return len(seen)
        seen.append(field)
        field = receptive_field(mask, 1).float() @ field.float() > 0
    return None


def visible_per_row(mask: Bool[Tensor, "token token"]) -> float:
    """Give the mean number of keys that a query sees: what a kernel that skips hidden pairs has to pay."""
    return (~mask).sum().item() / len(mask)


def _distances(length: int) -> Tensor:
    """Give i - j for every pair."""
    places = torch.arange(length)
    return places[:, None] - places


def _require_least(name: str, number: int, least: int) -> None:
    if number < least:
        raise ValueError(f"`{name}` must be at least {least}, got {number}.")
