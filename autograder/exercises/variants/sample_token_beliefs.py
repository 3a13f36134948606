"""The wrong beliefs about `sample_token`: each draws with one step gone wrong."""

import math

import torch

from autograder.exercises.variants.sample_token import exercise
from autograder.exercises.variants.sampling_steps import draw_one, ranked_and_cut
from course_lib import sampling


@exercise.misconception("""
    You always take the likeliest token. That is greedy decoding, and what temperature 0 asks for. Otherwise a token
    comes as often as its probability says; `torch.multinomial` draws so.
""")
def always_the_likeliest(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return int(logits.argmax())


@exercise.misconception("""
    The temperature changes nothing in your function. Divide the logits by it before the softmax.
""")
def temperature_ignored(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return sampling.sample_token(logits, 1.0 if temperature else 0.0, top_k, top_p, generator)


@exercise.misconception("""
    You multiply by the temperature. A high temperature should make the choice more even, so the logits have to get
    smaller.
""")
def multiplied_by_temperature(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return sampling.sample_token(logits, 1 / temperature if temperature else 0.0, top_k, top_p, generator)


@exercise.misconception("""
    You divide the probabilities by the temperature and not the logits. Scaled back to sum to 1, they are what they were
    before. The temperature has to act inside the exponential.
""")
def probabilities_divided(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    shares = logits.softmax(-1) / temperature
    ranked, order = ranked_and_cut((shares / shares.sum()).log(), 1.0, top_k, top_p)
    return draw_one(ranked, order, generator)


@exercise.misconception("""
    Temperature 0 divides by zero. It stands for the limit, greedy decoding: return the likeliest token before you
    divide.
""")
def division_by_zero(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    scaled = logits / temperature
    if not bool(torch.isfinite(scaled).all()):
        raise ZeroDivisionError
    return sampling.sample_token(scaled, 1.0, top_k, top_p, generator)


@exercise.misconception("""
    You take two softmaxes, one after the other. The second one reads probabilities as if they were logits, and as these
    lie between 0 and 1, its result is nearly even.
""")
def softmax_twice(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return int(logits.argmax())
    ranked, order = ranked_and_cut(logits, temperature, top_k, top_p)
    return draw_one(ranked.softmax(-1).masked_fill(ranked == -math.inf, -math.inf), order, generator)


@exercise.misconception("""
    top_k changes nothing in your function. Only the k likeliest tokens may be drawn.
""")
def top_k_ignored(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return sampling.sample_token(logits, temperature, None, top_p, generator)


@exercise.misconception("""
    You keep the k **least** likely tokens. Which end of your sorted list is the likely one?
""")
def least_likely_kept(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if top_k is not None and top_k < len(logits):
        out = logits.argsort()[top_k:]
        logits = logits.index_fill(0, out, -math.inf)
    return sampling.sample_token(logits, temperature, None, top_p, generator)


@exercise.misconception("""
    You put the logits outside the top k to 0, and a logit of 0 is no probability of 0: such tokens still come up. Which
    logit gives a share of exactly 0?
""")
def outside_set_to_zero(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if top_k is not None and top_k < len(logits):
        logits = logits.index_fill(0, logits.argsort(descending=True)[top_k:], 0.0)
    return sampling.sample_token(logits, temperature, None, top_p, generator)


@exercise.misconception("""
    top_p changes nothing in your function. Keep the likeliest tokens until their shares reach p.
""")
def top_p_ignored(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return sampling.sample_token(logits, temperature, top_k, None, generator)


@exercise.misconception("""
    You drop the token that crosses p. Then less than p is left. With the shares 0.34, 0.26, 0.17 and p = 0.7 the third
    token is still needed: the first two reach only 0.6.
""")
def crossing_token_dropped(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    keeps = lambda shares, p: shares.cumsum(-1) <= p  # noqa: E731
    return draw_one(*ranked_and_cut(logits, temperature, top_k, top_p, keeps), generator)


@exercise.misconception("""
    You keep every token whose **own** share reaches some limit set by p. Top-p adds shares up, from the likeliest on,
    until they reach p together.
""")
def each_share_by_itself(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    keeps = lambda shares, p: shares >= 1 - p  # noqa: E731
    return draw_one(*ranked_and_cut(logits, temperature, top_k, top_p, keeps), generator)


@exercise.misconception("""
    You add up shares in the order of the vocabulary. Sort first: the nucleus begins with the likeliest token.
""")
def not_sorted(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return int(logits.argmax())
    if top_k is not None:
        logits = logits.masked_fill(logits < logits.topk(min(top_k, len(logits))).values[-1], -math.inf)
    ranked, order = ranked_and_cut(logits, temperature, None, top_p, order=torch.arange(len(logits)))
    return draw_one(ranked, order, generator)


@exercise.misconception("""
    You return the place in the **sorted** list and not the token that stands there. Keep the indices that sorting gives
    you, and look the token up.
""")
def rank_instead_of_token(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return int(logits.argmax())
    if top_k is None and top_p is None:
        return sampling.sample_token(logits, temperature, None, None, generator)
    ranked, order = ranked_and_cut(logits, temperature, top_k, top_p)
    return draw_one(ranked, torch.arange(len(order)), generator)


@exercise.misconception("""
    Your p is measured on the shares among **all** tokens. After top-k, the tokens that are left share 1 among
    themselves, and p is measured on that. (So top-p before top-k is another rule than top-p after it.)
""")
def p_before_k(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    ranked, order = ranked_and_cut(logits, temperature, None, top_p)
    if top_k is not None:
        ranked = ranked.masked_fill(torch.arange(len(ranked)) >= top_k, -math.inf)
    return draw_one(ranked, order, generator)


@exercise.misconception("""
    Your temperature acts after the cuts, so the nucleus is that of temperature 1. The order is pinned: temperature,
    then top-k, then top-p.
""")
def temperature_last(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    ranked, order = ranked_and_cut(logits, 1.0, top_k, top_p)
    return draw_one(ranked / temperature if temperature else ranked * 1e4, order, generator)


@exercise.misconception("""
    Calls with equal generators draw different tokens: your chances come from torch's own generator. Pass
    `generator=generator` on.
""")
def generator_ignored(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return sampling.sample_token(logits, temperature, top_k, top_p, None)


@exercise.misconception("""
    You divide the caller's logits in place. At the next call they have been divided already, and the temperature acts
    twice. Make new ones: `logits / temperature`, without `/=`.
""")
def temperature_compounds(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return int(logits.argmax())
    logits /= temperature
    return sampling.sample_token(logits, 1.0, top_k, top_p, generator)
