"""Check `dropout` by statistics and structure: different honest draws give different, equally right masks."""

from __future__ import annotations

from functools import partial

import torch

from autograder.exercise import Case, Exercise
from autograder.exercises.norms_and_residuals import CHAPTER
from autograder.exercises.norms_and_residuals.random_drops import (
    batch_of_sequences,
    different_generators,
    drops_as_asked,
    equal_generators,
    one_call,
    same_belief,
)
from autograder.program import call
from course_lib import residual

judged = partial(Case, judge=drops_as_asked, alike=same_belief)

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=residual.dropout,
    returns=("the result",),
    forbids=[
        "torch.nn.functional.dropout",
        "torch.dropout",
        "torch.native_dropout",
        "torch.nn.functional.alpha_dropout",
        "torch.nn.functional.dropout1d",
    ],
    forbids_because="this exercise asks you to build it from random numbers",
    cases=[
        judged("training, twice with equal generators", lambda draw: equal_generators(draw, 0.2, 0.4)),
        Case("not training", lambda draw: one_call(draw, draw.number(0.2, 0.8), training=False)),
        Case("p is 0", lambda draw: one_call(draw, 0.0, training=True)),
        Case("p is 1", lambda draw: one_call(draw, 1.0, training=True)),
        judged("most is dropped", lambda draw: equal_generators(draw, 0.6, 0.9), hidden=True),
        judged(
            "training, twice with different generators", lambda draw: different_generators(draw, 0.2, 0.4), hidden=True
        ),
        judged("a batch of sequences", lambda draw: batch_of_sequences(draw, 0.2, 0.4), hidden=True),
        judged("float64", lambda draw: equal_generators(draw, 0.2, 0.4), hidden=True, dtype="float64"),
        Case("p is 1.5", lambda draw: one_call(draw, 1.5, training=True), hidden=True),
        Case("p is negative", lambda draw: one_call(draw, -draw.number(0.1, 0.9), training=True), hidden=True),
        Case(
            "few numbers, not training",
            lambda draw: call(draw.normal(*draw.sizes(3)), 0.5, False, generator=draw.generator()),
            hidden=True,
        ),
    ],
)


def _check_share(p):
    if not 0 <= p < 1:
        raise ValueError(f"`p` must lie in [0, 1), got {p}")


def _kept(shape, p, generator):
    return torch.rand(shape, generator=generator) >= p


@exercise.misconception("""
    What you keep comes through unchanged, so in training the sum of a layer is smaller, by the factor 1 - p, than when
    the model is used. Average your result over many draws: is it x? Divide what is kept so that it is.
""")
def survivors_not_scaled(x, p, training, generator=None):
    _check_share(p)
    return x * _kept(x.shape, p, generator) if training else x


@exercise.misconception("""
    You multiply what is kept by 1 - p, so the average shrinks twice: once by what is dropped, once by the factor. To
    keep the average, divide.
""")
def survivors_scaled_down(x, p, training, generator=None):
    _check_share(p)
    return x * _kept(x.shape, p, generator) * (1 - p) if training else x


@exercise.misconception("""
    This is dropout as the paper has it: nothing is scaled in training, and everything by 1 - p in use. Both forms keep
    the average. Today's libraries and this exercise scale in training ("inverted" dropout), so that a model in use
    needs no dropout at all.
""")
def scaled_in_use(x, p, training, generator=None):
    _check_share(p)
    return x * _kept(x.shape, p, generator) if training else x * (1 - p)


@exercise.misconception("""
    Right in training, but in use you divide by 1 - p as well. When nothing is dropped there is nothing to make up for.
""")
def scaled_in_use_too(x, p, training, generator=None):
    _check_share(p)
    return x * _kept(x.shape, p, generator) / (1 - p) if training else x / (1 - p)


@exercise.misconception("""
    You read p as the share that is kept; some older libraries do (`keep_prob`). Here p is the share that is dropped.
""")
def p_is_the_share_kept(x, p, training, generator=None):
    _check_share(p)
    if not training or p == 0:
        return x
    return x * (torch.rand(x.shape, generator=generator) < p) / p


@exercise.misconception("""
    The scale is right, but the mask is the wrong way round: the share p is kept and the rest dropped. Which side of
    your comparison is kept?
""")
def mask_the_wrong_way_round(x, p, training, generator=None):
    _check_share(p)
    if not training or p == 0:
        return x
    return x * (torch.rand(x.shape, generator=generator) < p) / (1 - p)


@exercise.misconception("""
    The right share is dropped, but you divide by p. What is kept is the share 1 - p, and that is the number to make up
    for.
""")
def divided_by_p(x, p, training, generator=None):
    _check_share(p)
    if not training or p == 0:
        return x
    return x * _kept(x.shape, p, generator) / p


@exercise.misconception("""
    Your dropout is active when the model is used: two readers of the same text get different answers. It must change
    nothing unless `training` is True. (In PyTorch this is what `model.eval()` is for, and forgetting it is one of the
    most frequent faults.)
""")
def active_in_use(x, p, training, generator=None):
    _check_share(p)
    return x * _kept(x.shape, p, generator) / (1 - p)


@exercise.misconception("""
    Training and use have changed places: you drop when `training` is False.
""")
def training_the_wrong_way_round(x, p, training, generator=None):
    _check_share(p)
    return x if training else x * _kept(x.shape, p, generator) / (1 - p)


@exercise.misconception("""
    Two calls with equal generators drop different entries: your random numbers come from torch's own generator. Pass
    `generator=generator` to the function that draws them (`rand` takes it, `rand_like` may not); only then can a run
    be repeated.
""")
def generator_ignored(x, p, training, generator=None):
    _check_share(p)
    return x * _kept(x.shape, p, None) / (1 - p) if training else x


@exercise.misconception("""
    Two different generators drop the very same entries: you set a seed of your own inside. The model would then drop
    the same entries in every step, which is a smaller model and not dropout.
""")
def seed_of_its_own(x, p, training, generator=None):
    _check_share(p)
    return x * _kept(x.shape, p, torch.Generator().manual_seed(0)) / (1 - p) if training else x


@exercise.misconception("""
    You draw one chance per token, so whole tokens vanish. Each entry has a chance of its own: draw in the shape of x.
""")
def whole_tokens_dropped(x, p, training, generator=None):
    _check_share(p)
    return x * _kept((*x.shape[:-1], 1), p, generator) / (1 - p) if training else x


@exercise.misconception("""
    You draw one chance per feature and use it for all tokens. Each entry has a chance of its own: draw in the shape of
    x.
""")
def whole_features_dropped(x, p, training, generator=None):
    _check_share(p)
    return x * _kept(x.shape[-1:], p, generator) / (1 - p) if training else x


@exercise.misconception("""
    All sequences of your batch lose the same entries: you draw one mask in the shape of a sequence and use it for every
    batch row. Each entry has a chance of its own: draw in the shape of x.
""")
def one_mask_for_the_batch(x, p, training, generator=None):
    _check_share(p)
    return x * _kept(x.shape[-2:], p, generator) / (1 - p) if training else x


@exercise.misconception("""
    Everything is right except p = 1, which you let pass: nothing is left to scale up, and 0 divided by 0 is NaN.
    Raise a `ValueError` that names `p`.
""")
def p_of_one_accepted(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"`p` must lie in [0, 1], got {p}")
    return x * _kept(x.shape, p, generator) / (1 - p) if training else x


@exercise.misconception("""
    p = 1 gives zeros in your function. That is what the framework does; here p must lie in [0, 1), since a layer whose
    every entry is dropped is most likely a mistake. Raise a `ValueError` that names `p`.
""")
def p_of_one_gives_zeros(x, p, training, generator=None):
    if not 0 <= p <= 1:
        raise ValueError(f"`p` must lie in [0, 1], got {p}")
    if training and p == 1:
        return torch.zeros_like(x)
    return x * _kept(x.shape, p, generator) / (1 - p) if training else x


@exercise.misconception("""
    A negative p passes: nothing is dropped, and everything is scaled down in silence. Refuse what lies below 0 as
    well, with a `ValueError` that names `p`.
""")
def negative_p_accepted(x, p, training, generator=None):
    if p >= 1:
        raise ValueError(f"`p` must be below 1, got {p}")
    return x * _kept(x.shape, p, generator) / (1 - p) if training else x


@exercise.misconception("""
    You changed the caller's tensor itself. In a transformer it may be the skip path as well. Make a new one instead of
    using an assignment to part of it, `*=` or a method that ends in `_`.
""")
def input_changed_in_place(x, p, training, generator=None):
    _check_share(p)
    if training:
        x *= _kept(x.shape, p, generator) / (1 - p)
    return x


@exercise.alternative
def below_the_share_kept(x, p, training, generator=None):
    _check_share(p)
    if not training:
        return x.clone()
    return torch.where(torch.rand(x.shape, generator=generator) < 1 - p, x / (1 - p), 0.0)


@exercise.alternative
def by_bernoulli(x, p, training, generator=None):
    if p < 0 or p >= 1:
        raise ValueError("p")
    if training:
        x = x * torch.bernoulli(torch.full_like(x, 1 - p), generator=generator) / (1 - p)
    return x


@exercise.alternative
def by_bernoulli_in_place_on_a_mask(x, p, training, generator=None):
    _check_share(p)
    dropped = torch.empty_like(x).bernoulli_(p, generator=generator).bool()
    return (x * (1 / (1 - p))).masked_fill(dropped, 0.0) if training else x


@exercise.alternative
def by_uniform_in_float64(x, p, training, generator=None):
    _check_share(p)
    if not training or not p:
        return x
    chances = torch.empty(x.shape, dtype=torch.float64).uniform_(generator=generator)
    result = x.clone()
    result[chances < p] = 0
    return result.div(1 - p)


@exercise.alternative
def with_two_branches_in_one_mask(x, p, training, generator=None):
    _check_share(p)
    scale = torch.ones_like(x)
    if training:
        scale = (torch.rand(x.numel(), generator=generator).reshape(x.shape) > p).to(x.dtype) / (1 - p)
    return scale * x
