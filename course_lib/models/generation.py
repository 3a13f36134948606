"""Let a language model write: ask it for the next token, append what is drawn, ask again."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.sampling import sample_token


def next_logits(model: nn.Module, tokens: Int[Tensor, " token"]) -> Float[Tensor, " vocab"]:
    """Give the logits of the token after the last one, read from at most the model's `max_length` last tokens.

    Raises:
        ValueError: there is no token to go on from.
    """
    if not len(tokens):
        raise ValueError("`tokens` is empty; a model needs at least one token to go on from.")
    limit = getattr(model, "max_length", len(tokens))
    with torch.no_grad():
        return model(tokens[None, -limit:])[0, -1]


def generate(
    model: nn.Module,
    prompt: Int[Tensor, " token"],
    length: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, " longer"]:
    """Continue `prompt` by `length` tokens; return both together.

    Every token costs a whole pass over what stands before it: nothing is kept between steps. Chapter 08's cache of
    keys and values saves that.

    Args:
        model: gives logits `(batch, token, vocab)` for tokens `(batch, token)`. With learned positions it must have
            been trained to predict from all of them: beyond `max_length` tokens it always goes on from the last.
        prompt: what the model reads first.
        length: how many tokens it writes.
        temperature: as in `sample_token`, and so are the next three.
        top_k: only that many of the likeliest tokens may be drawn.
        top_p: only the likeliest tokens that together reach this probability may be drawn.
        generator: where the chances come from.

    Raises:
        ValueError: the prompt is empty, or a setting of the sampling is out of its range.
    """
    tokens = prompt
    for _ in range(length):
        chosen = sample_token(next_logits(model, tokens), temperature, top_k, top_p, generator)
        tokens = torch.cat([tokens, tokens.new_tensor([chosen])])
    return tokens
