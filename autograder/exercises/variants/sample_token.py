"""Check `sample_token` by hundreds of draws: temperature, then top-k, then top-p."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.variants import CHAPTER
from autograder.exercises.variants.drawn_tokens import DRAWS, EQUAL, drawn_as_asked, same_belief
from autograder.program import Program, call
from course_lib import sampling

# Chances that no rule confuses: each cut below falls between two of them.
SHARES = (0.34, 0.26, 0.17, 0.13, 0.1)


def shuffled(draw: Draw, shares: tuple[float, ...] = SHARES) -> torch.Tensor:
    """Give logits with known chances, at drawn places, and the likeliest neither first nor last."""
    order = draw.random.permutation(len(shares))
    while order[0] in (0, 1) or order[-1] in (0, 1):
        order = draw.random.permutation(len(shares))
    logits = torch.tensor([math.log(shares[place]) for place in order]) + draw.number(-3, 3)
    return draw.array(logits.numpy().astype(float))


def many(draw: Draw, **settings: Any) -> Program:
    """Draw many times with different generators, and a few times with equal ones."""
    logits, program = shuffled(draw), Program()
    for _ in range(DRAWS):
        program = program.call(logits, generator=draw.generator(), **settings)
    again = draw.generator()
    for _ in range(EQUAL):
        program = program.call(logits, generator=again, **settings)
    return program


def greedy(draw: Draw) -> Program:
    """Ask at temperature 0, where the likeliest token is the only one."""
    logits = shuffled(draw)
    return call(logits, temperature=0, generator=draw.generator()).call(
        logits, temperature=0.0, top_k=3, top_p=0.9, generator=draw.generator()
    )


def nothing_to_choose(draw: Draw) -> Program:
    """Leave one token by top-k, by a small p, and by a temperature near 0."""
    logits = shuffled(draw)
    program = call(logits, top_k=1, generator=draw.generator())
    program = program.call(logits, top_p=0.01, generator=draw.generator())
    return program.call(logits, temperature=1e-3, generator=draw.generator())


def no_generator(draw: Draw) -> Program:
    """Leave the generator out where there is nothing to choose, and allow more tokens than there are."""
    logits = shuffled(draw)
    return call(logits, 1.0, 1).call(logits, 0.001, 50, 1.0)


judged = partial(Case, judge=drawn_as_asked, alike=same_belief)

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=sampling.sample_token,
    returns=("the token",),
    cases=[
        judged("plain", many),
        judged("temperature 0.25", partial(many, temperature=0.25)),
        Case("temperature 0", greedy),
        judged("the 3 likeliest", partial(many, top_k=3)),
        judged("p = 0.7", partial(many, top_p=0.7)),
        Case("nothing to choose", nothing_to_choose, hidden=True),
        judged("temperature 2 and p = 0.72", partial(many, temperature=2.0, top_p=0.72), hidden=True),
        # Of the 3 likeliest the first has 0.44 and the first two 0.78; of all, the first two have 0.6.
        judged("the 3 likeliest, then p = 0.7", partial(many, top_k=3, top_p=0.7), hidden=True),
        Case("without a generator", no_generator, hidden=True),
        judged("float64", partial(many, temperature=1.5, top_k=4), hidden=True, dtype="float64"),
    ],
)


def _cut(logits, temperature, top_k, top_p, keeps=None, order=None):
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


def _drawn(ranked, order, generator):
    return int(order[torch.multinomial(ranked.softmax(-1), 1, generator=generator)])


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
    ranked, order = _cut((shares / shares.sum()).log(), 1.0, top_k, top_p)
    return _drawn(ranked, order, generator)


@exercise.misconception("""
    Temperature 0 divides by zero. It stands for the limit, greedy decoding: return the likeliest token before you
    divide.
""")
def division_by_zero(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    scaled = logits / temperature
    if not bool(torch.isfinite(scaled).all()):
        raise ZeroDivisionError("the temperature is 0")
    return sampling.sample_token(scaled, 1.0, top_k, top_p, generator)


@exercise.misconception("""
    You take two softmaxes, one after the other. The second one reads probabilities as if they were logits, and as these
    lie between 0 and 1, its result is nearly even.
""")
def softmax_twice(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return int(logits.argmax())
    ranked, order = _cut(logits, temperature, top_k, top_p)
    return _drawn(ranked.softmax(-1).masked_fill(ranked == -math.inf, -math.inf), order, generator)


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
    return _drawn(*_cut(logits, temperature, top_k, top_p, keeps), generator)


@exercise.misconception("""
    You keep every token whose **own** share reaches some limit set by p. Top-p adds shares up, from the likeliest on,
    until they reach p together.
""")
def each_share_by_itself(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    keeps = lambda shares, p: shares >= 1 - p  # noqa: E731
    return _drawn(*_cut(logits, temperature, top_k, top_p, keeps), generator)


@exercise.misconception("""
    You add up shares in the order of the vocabulary. Sort first: the nucleus begins with the likeliest token.
""")
def not_sorted(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return int(logits.argmax())
    if top_k is not None:
        logits = logits.masked_fill(logits < logits.topk(min(top_k, len(logits))).values[-1], -math.inf)
    ranked, order = _cut(logits, temperature, None, top_p, order=torch.arange(len(logits)))
    return _drawn(ranked, order, generator)


@exercise.misconception("""
    You return the place in the **sorted** list and not the token that stands there. Keep the indices that sorting gives
    you, and look the token up.
""")
def rank_instead_of_token(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return int(logits.argmax())
    if top_k is None and top_p is None:
        return sampling.sample_token(logits, temperature, None, None, generator)
    ranked, order = _cut(logits, temperature, top_k, top_p)
    return _drawn(ranked, torch.arange(len(order)), generator)


@exercise.misconception("""
    Your p is measured on the shares among **all** tokens. After top-k, the tokens that are left share 1 among
    themselves, and p is measured on that. (So top-p before top-k is another rule than top-p after it.)
""")
def p_before_k(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    ranked, order = _cut(logits, temperature, None, top_p)
    if top_k is not None:
        ranked = ranked.masked_fill(torch.arange(len(ranked)) >= top_k, -math.inf)
    return _drawn(ranked, order, generator)


@exercise.misconception("""
    Your temperature acts after the cuts, so the nucleus is that of temperature 1. The order is pinned: temperature,
    then top-k, then top-p.
""")
def temperature_last(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    ranked, order = _cut(logits, 1.0, top_k, top_p)
    return _drawn(ranked / temperature if temperature else ranked * 1e4, order, generator)


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
    ranked, order = _cut(logits, temperature, top_k, top_p)
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
