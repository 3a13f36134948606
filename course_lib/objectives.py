"""What a language model is asked to do: name the next token, the hidden tokens, or the spans that were cut out.

One trunk serves all three objectives. They differ in what is hidden and in which places are scored. A label of -100
marks a place that is not.
"""

from collections.abc import Collection, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

IGNORED = -100  # the label that PyTorch's own loss leaves out unless told otherwise
SHARE_CHOSEN = 0.15  # Devlin et al. 2018, §3.1
SHARE_MASKED, SHARE_REPLACED = 0.8, 0.1  # of the chosen tokens; the rest stays as it is


def next_token_loss(
    logits: Float[Tensor, "batch token vocab"], tokens: Int[Tensor, "batch token"], ignore_index: int = IGNORED
) -> Float[Tensor, ""]:
    """Score every place on the token after it: the mean of -log softmax(logits_t)[tokens_{t+1}].

    The last place has nothing to say about, and the first token is nobody's target.

    Args:
        logits: what the model says at every place.
        tokens: what it has read, and so what came next.
        ignore_index: a target with this id is not counted; if none is counted the loss is 0.

    Raises:
        ValueError: the two differ in batch or length.

    Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", eq. 1. The paper sums
    log-likelihoods, to be maximized; here the mean of their negatives is minimized.
    """
    _require_places(logits, "tokens", tokens)
    return _mean_loss(logits[:, :-1], tokens[:, 1:], ignore_index)


def masked_lm_loss(logits: Float[Tensor, "batch token vocab"], labels: Int[Tensor, "batch token"]) -> Float[Tensor, ""]:
    """Score every labeled place on its own token: the mean of -log softmax(logits_t)[labels_t] where labels_t ≠ -100.

    Raises:
        ValueError: the two differ in batch or length.

    Source: Devlin et al. 2018, §3.1, arXiv 1810.04805.
    """
    _require_places(logits, "labels", labels)
    return _mean_loss(logits, labels, IGNORED)


def mask_tokens(
    tokens: Int[Tensor, "*batch token"],
    mask_id: int,
    vocab_size: int,
    special_ids: Collection[int],
    generator: torch.Generator | None,
    p: float = SHARE_CHOSEN,
) -> tuple[Int[Tensor, "*batch token"], Int[Tensor, "*batch token"]]:
    """Choose each ordinary token with the chance p; of the chosen ones mask 80 %, replace 10 %, and keep 10 %.

    Args:
        tokens: the text.
        mask_id: the id that hides a token.
        vocab_size: number of ids, special ones included.
        special_ids: never chosen, and never a replacement.
        generator: where chances come from; torch's own if None.
        p: the chance of a token to be chosen.

    Returns:
        inputs: what the model reads.
        labels: the original token where one was chosen, -100 elsewhere.

    Raises:
        ValueError: `p` lies outside [0, 1], or no ordinary id is left for replacements.

    Source: Devlin et al. 2018, §3.1 and appendix A.1, arXiv 1810.04805. The paper draws a fixed number of places for
    each text, once; here every token has its own chance, in every call.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"`p` must lie in [0, 1], got {p}.")
    reserved = {int(number) for number in special_ids}
    ordinary = torch.tensor([number for number in range(vocab_size) if number not in reserved | {mask_id}])
    if not len(ordinary):
        raise ValueError(f"`special_ids` and `mask_id` leave none of the {vocab_size} ids for replacements.")
    special = torch.isin(tokens, torch.tensor(sorted(reserved), dtype=tokens.dtype))
    chosen = (torch.rand(tokens.shape, generator=generator) < p) & ~special
    fate = torch.rand(tokens.shape, generator=generator)
    replacement = ordinary[torch.randint(len(ordinary), tokens.shape, generator=generator)].to(tokens.dtype)
    inputs = tokens.masked_fill(chosen & (fate < SHARE_MASKED), mask_id)
    replaced = chosen & (fate >= SHARE_MASKED) & (fate < SHARE_MASKED + SHARE_REPLACED)
    return torch.where(replaced, replacement, inputs), tokens.masked_fill(~chosen, IGNORED)


def corrupt_spans(
    tokens: Sequence[int], spans: Sequence[tuple[int, int]], first_sentinel: int
) -> tuple[list[int], list[int]]:
    """Cut spans out of a text, leave a sentinel in place of each, and ask for what was cut.

    Span i becomes the sentinel first_sentinel - i. The targets list, for each span, its sentinel and its tokens, and
    close with one more sentinel, which says that nothing follows.

    Args:
        tokens: the text.
        spans: half-open pairs (start, end) in the order of the text, which do not overlap.
        first_sentinel: the id of the first sentinel; each next one is one lower.

    Raises:
        ValueError: a span is empty, out of order, overlaps its predecessor or leaves the text.

    Source: Raffel et al. 2020, §3.1.4 and fig. 2, arXiv 1910.10683.
    """
    inputs: list[int] = []
    targets: list[int] = []
    copied = 0
    for index, (start, end) in enumerate(spans):
        if not copied <= start < end <= len(tokens):
            raise ValueError(
                f"`spans[{index}]` is ({start}, {end}); each span must hold a token, begin no earlier than the one "
                f"before ends ({copied}), and end within the {len(tokens)} tokens."
            )
        sentinel = first_sentinel - index
        inputs += [*tokens[copied:start], sentinel]
        targets += [sentinel, *tokens[start:end]]
        copied = end
    return [*inputs, *tokens[copied:]], [*targets, first_sentinel - len(spans)]


def restore_spans(inputs: Sequence[int], targets: Sequence[int], first_sentinel: int, num_spans: int) -> list[int]:
    """Put the spans back where their sentinels stand: the inverse of `corrupt_spans`.

    Raises:
        ValueError: `inputs` or `targets` lacks a sentinel.
    """
    sentinels = [first_sentinel - index for index in range(num_spans + 1)]
    for name, sequence, wanted in (("inputs", inputs, sentinels[:-1]), ("targets", targets, sentinels)):
        missing = [sentinel for sentinel in wanted if sentinel not in sequence]
        if missing:
            raise ValueError(f"`{name}` lacks the sentinel {missing[0]}.")
    places = [list(targets).index(sentinel) for sentinel in sentinels]
    cut = {
        sentinel: list(targets[start + 1 : end])
        for sentinel, start, end in zip(sentinels[:-1], places[:-1], places[1:], strict=True)
    }
    return [token for place in inputs for token in cut.get(place, [place])]


def _mean_loss(
    logits: Float[Tensor, "batch token vocab"], targets: Int[Tensor, "batch token"], ignored: int
) -> Float[Tensor, ""]:
    """Average the surprise at the targets that count; half precision is raised to float32 for it."""
    wide = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    counted: Bool[Tensor, "batch token"] = targets != ignored
    surprise = -wide[counted].log_softmax(dim=-1)
    chosen = surprise.gather(-1, targets[counted].long()[:, None])
    return (chosen.sum() / max(1, int(counted.sum()))).to(logits.dtype)


def _require_places(logits: Tensor, name: str, targets: Tensor) -> None:
    if logits.ndim != targets.ndim + 1 or logits.shape[:-1] != targets.shape:
        raise ValueError(
            f"`logits` must be (batch, token, vocab) and `{name}` (batch, token) of the same batch and length, got "
            f"{tuple(logits.shape)} and {tuple(targets.shape)}."
        )
