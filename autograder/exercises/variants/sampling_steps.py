"""Sampling taken apart into its steps, so that a belief or another form can replace one of them."""

import math

import torch


def ranked_and_cut(logits, temperature, top_k, top_p, keeps=None, order=None):
    """Give ranked logits after every cut, and the order; `keeps` decides on top-p from ranked shares."""
    order = logits.argsort(descending=True) if order is None else order
    ranked = logits[order] / (temperature or 1)
    if temperature == 0:
        ranked = ranked * 1e4
    if top_k is not None:
        ranked = ranked.masked_fill(torch.arange(len(ranked)) >= top_k, -math.inf)
    if top_p is not None:
        shares = ranked.softmax(-1)
        kept = (shares.cumsum(-1) - shares < top_p) if keeps is None else keeps(shares, top_p)
        kept[0] = True
        ranked = ranked.masked_fill(~kept, -math.inf)
    return ranked, order


def draw_one(ranked, order, generator):
    """Draw a token from what was ranked."""
    return int(order[torch.multinomial(ranked.softmax(-1), 1, generator=generator)])
