"""Steps for decoders: small tables of logits that both sides know by name."""

import torch
from torch import Tensor

SURE = 20.0  # a logit far above and, with a minus, far below all drawn ones


class RowStep:
    """Give each row logits of its own, that depend on how much is written and on every token of it."""

    def __init__(self, table: Tensor) -> None:
        """Take a table (rows, places, vocab, vocab)."""
        self.table = table

    def __call__(self, tokens: Tensor) -> Tensor:
        """Look up the logits (rows, vocab) of the next token."""
        require_tokens(tokens, len(self.table))
        seen = tokens.sum(dim=1) % self.table.shape[-1]
        return self.table[torch.arange(len(tokens)), min(tokens.shape[1], self.table.shape[1]) - 1, seen]


class PrefixStep:
    """Give logits that depend on what is written and on nothing else, for any number of rows."""

    def __init__(self, table: Tensor) -> None:
        """Take a table (places, vocab, vocab, vocab)."""
        self.table = table

    def __call__(self, tokens: Tensor) -> Tensor:
        """Look up the logits (rows, vocab) of the next token."""
        require_tokens(tokens)
        seen = tokens[:, :-1].sum(dim=1) % self.table.shape[-1]
        return self.table[min(tokens.shape[1], len(self.table)) - 1, tokens[:, -1], seen]


def require_tokens(tokens: object, rows: int | None = None) -> None:
    """Refuse what is not a table of token ids."""
    if not isinstance(tokens, Tensor) or tokens.dtype not in (torch.int64, torch.int32):
        kind = f"dtype {tokens.dtype}" if isinstance(tokens, Tensor) else type(tokens).__name__
        raise TypeError(f"step takes a tensor of token ids (int64), got {kind}")
    if tokens.ndim != 2 or (rows is not None and len(tokens) != rows):
        wanted = "(rows, written so far)" if rows is None else f"({rows}, written so far)"
        raise ValueError(f"step takes tokens of shape {wanted}, got {tuple(tokens.shape)}")
