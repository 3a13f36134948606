"""Other forms of `sample_token` that every check accepts."""

import math

import torch

from autograder.exercises.variants.sample_token import exercise
from autograder.exercises.variants.sampling_steps import ranked_and_cut


@exercise.alternative
def by_masks(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax().item()
    logits = logits / temperature
    if top_k is not None:
        least = torch.topk(logits, min(top_k, logits.shape[-1])).values[-1]
        logits = torch.where(logits < least, -math.inf, logits)
    if top_p is not None:
        ranked, order = torch.sort(logits, descending=True)
        remove = ranked.softmax(-1).cumsum(-1) >= top_p
        remove[1:] = remove[:-1].clone()
        remove[0] = False
        logits = logits.index_fill(0, order[remove], -math.inf)
    return torch.multinomial(torch.softmax(logits, -1), num_samples=1, generator=generator).item()


@exercise.alternative
def by_the_cumulative_sum(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return int(torch.argmax(logits))
    shares, order = (logits / temperature).softmax(-1).sort(descending=True)
    shares, order = shares[:top_k], order[:top_k]
    shares = shares / shares.sum()
    if top_p is not None:
        shares = shares[: 1 + int((shares.cumsum(-1)[:-1] < top_p).sum())]
    u = torch.rand((), generator=generator) * shares.sum()
    return int(order[min(int((shares.cumsum(-1) < u).sum()), len(shares) - 1)])


@exercise.alternative
def by_gumbel_noise(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return int(logits.argmax())
    ranked, order = ranked_and_cut(logits, temperature, top_k, top_p)
    noise = -torch.log(-torch.log(torch.rand(ranked.shape, generator=generator)))
    return int(order[(ranked + noise).argmax()])


@exercise.alternative
def in_plain_python(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    values = logits.tolist()
    ranked = sorted(range(len(values)), key=lambda token: values[token], reverse=True)
    if temperature == 0:
        return ranked[0]
    ranked = ranked[:top_k]
    weights = [math.exp((values[token] - values[ranked[0]]) / temperature) for token in ranked]
    total, kept = sum(weights), []
    for weight in weights:
        if top_p is not None and kept and sum(kept) / total >= top_p:
            break
        kept.append(weight)
    return ranked[int(torch.multinomial(torch.tensor(kept), 1, generator=generator))]
