"""Write a sequence token by token: what the decoder reads in training, and how it chooses when it writes alone."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

Step = Callable[[Tensor], Tensor]  # tokens (rows, so far) → logits (rows, vocab) of the next token


def shift_right(tokens: Int[Tensor, "batch target"], start_id: int) -> Int[Tensor, "batch target"]:
    """Give what a decoder reads while it learns to write `tokens`: the start, then all tokens but the last.

    The place that must write token t reads the tokens before t, and nothing else.

    Source: Vaswani et al. 2017, §3.1, "output embeddings are offset by one position", arXiv 1706.03762.
    """
    start = torch.full_like(tokens[:, :1], start_id)
    return torch.cat([start, tokens[:, :-1]], dim=1)


def greedy_decode(step: Step, start_id: int, end_id: int, max_length: int, batch: int) -> Int[Tensor, "batch written"]:
    """Write the likeliest token at every step, in all rows at once, until every row has ended.

    Args:
        step: gives the logits `(batch, vocab)` of the next token after the tokens `(batch, so far)`.
        start_id: the first token of every row; it may be the same as `end_id`, and ends nothing.
        end_id: ends a row, and fills it up while others are being written.
        max_length: the most tokens of a row, the start included.
        batch: number of rows.
    """
    tokens = torch.full((batch, 1), start_id)
    ended = torch.zeros(batch, dtype=torch.bool)
    while tokens.shape[1] < max_length and not ended.all():
        chosen = step(tokens).argmax(dim=-1).masked_fill(ended, end_id)
        ended |= chosen == end_id
        tokens = torch.cat([tokens, chosen[:, None]], dim=1)
    return tokens


def beam_search(step: Step, start_id: int, end_id: int, max_length: int, beams: int) -> tuple[list[int], float]:
    """Follow several beginnings of one sequence side by side; return the best sequence and its score.

    score = Σ log p(token | tokens before) / generated tokens, the end included

    Every step keeps the `beams` best continuations of all live beginnings by their sum. One that ends leaves for
    the pool of finished sequences, and its place stays empty in that step. The best score among finished and live
    sequences wins.

    Args:
        step: gives the logits `(rows, vocab)` of the next token after the tokens `(rows, so far)`.
        start_id: the first token.
        end_id: ends a sequence.
        max_length: the most tokens, the start included.
        beams: how many continuations a step keeps.

    Raises:
        ValueError: `max_length` leaves room for no token, or `beams` is below 1.

    Source: the search of Sutskever et al. 2014, §3.2, arXiv 1409.3215; the division by the length as in Wu et al.
    2016, §7, arXiv 1609.08144, with α = 1.
    """
    if max_length < 2 or beams < 1:
        raise ValueError(f"`max_length` must be 2 or more and `beams` 1 or more; got {max_length} and {beams}.")
    live: list[tuple[float, list[int]]] = [(0.0, [start_id])]
    finished: list[tuple[float, list[int]]] = []
    for _ in range(max_length - 1):
        logits = step(torch.tensor([tokens for _, tokens in live]))
        kept = _best_continuations(live, logits, beams)
        finished += [(total, tokens) for total, tokens in kept if tokens[-1] == end_id]
        live = [(total, tokens) for total, tokens in kept if tokens[-1] != end_id]
        if not live:
            break
    score, tokens = max((total / (len(tokens) - 1), tokens) for total, tokens in finished + live)
    return tokens, score


def _best_continuations(
    live: list[tuple[float, list[int]]], logits: Float[Tensor, "rows vocab"], beams: int
) -> list[tuple[float, list[int]]]:
    sums = logits.double().log_softmax(dim=-1) + torch.tensor([[total] for total, _ in live], dtype=torch.float64)
    best = sums.flatten().topk(min(beams, sums.numel()))
    places = zip(best.values.tolist(), best.indices.tolist(), strict=True)
    vocab = logits.shape[-1]
    return [(total, [*live[place // vocab][1], place % vocab]) for total, place in places]
