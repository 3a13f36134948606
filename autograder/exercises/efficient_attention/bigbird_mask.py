"""Check `bigbird_mask` by its rules: a window, global tokens, and an exact number of random keys per row."""

from functools import partial

import torch

from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.exercises.efficient_attention.random_keys import as_asked, same_belief, two_draws
from course_lib.efficient import sparse

case = partial(Case, judge=as_asked, alike=same_belief)

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=sparse.bigbird_mask,
    returns=("the mask",),
    cases=[
        case("window, global and random", lambda draw: two_draws(draw, draw.integer(28, 32), 3, 2, 4)),
        case("no random keys", lambda draw: two_draws(draw, draw.integer(9, 12), 2, 2, 0)),
        case("no global tokens", lambda draw: two_draws(draw, draw.integer(24, 28), 2, 0, 3), hidden=True),
        case("more random keys than are left", lambda draw: two_draws(draw, 12, 3, 1, draw.integer(6, 8)), hidden=True),
        case("a window of one", lambda draw: two_draws(draw, draw.integer(24, 28), 1, 3, 2), hidden=True),
        case("a wide window", lambda draw: two_draws(draw, 9, draw.integer(7, 9), 1, 2), hidden=True),
        case("many random keys", lambda draw: two_draws(draw, draw.integer(36, 40), 2, 1, 12), hidden=True),
    ],
)


def _fixed(length, window, num_global):
    return sparse.longformer_mask(length, window, list(range(num_global)))


def _add_random(mask, rows, candidates, num_random, generator):
    """Show to each of some rows a number of keys among its candidates."""
    for i in rows:
        free = candidates(i)
        mask[i, free[torch.randperm(len(free), generator=generator)[:num_random]]] = False
    return mask


@exercise.misconception("""
    Your mask is True where a token may look. In this course True hides.
""")
def inverted(length, window, num_global, num_random, generator):
    return ~sparse.bigbird_mask(length, window, num_global, num_random, generator)


@exercise.misconception("""
    Some of your random keys were visible already, by window or as global tokens, so that rows see too few further ones.
    Draw among the keys that are still hidden.
""")
def drawn_among_all_keys(length, window, num_global, num_random, generator):
    mask = _fixed(length, window, num_global)
    return _add_random(mask, range(num_global, length), lambda i: torch.arange(length), num_random, generator)


@exercise.misconception("""
    Some rows got fewer random keys than asked for: the same key was drawn twice. Draw without replacement
    (`torch.randperm` gives a whole order at once).
""")
def drawn_with_replacement(length, window, num_global, num_random, generator):
    mask = _fixed(length, window, num_global)
    for i in range(num_global, length):
        free = mask[i].nonzero().squeeze(-1)
        if len(free) and num_random < len(free):
            mask[i, free[torch.randint(len(free), (num_random,), generator=generator)]] = False
        elif num_random:
            mask[i] = False
    return mask


@exercise.misconception("""
    Global tokens are seen by everyone in your mask, and do not see everyone themselves. They are to collect and to hand
    out: rows as well as columns.
""")
def global_columns_alone(length, window, num_global, num_random, generator):
    mask = sparse.bigbird_mask(length, window, num_global, num_random, generator)
    own = sparse.sliding_window_mask(length, window, causal=False)
    mask[:num_global, num_global:] = own[:num_global, num_global:]
    return mask


@exercise.misconception("""
    Global tokens see everyone in your mask, and are not seen by everyone: their columns are missing.
""")
def global_rows_alone(length, window, num_global, num_random, generator):
    mask = sparse.sliding_window_mask(length, window, causal=False)
    mask[:num_global] = False
    own = lambda i: (mask[i] & (torch.arange(length) >= num_global)).nonzero().squeeze(-1)  # noqa: E731
    return _add_random(mask, range(num_global, length), own, num_random, generator)


@exercise.misconception("""
    You made the random part symmetric: where query i got key j, query j got key i as well, so that rows have more
    random keys than asked for. Here each row draws for itself.
""")
def symmetric_random_keys(length, window, num_global, num_random, generator):
    mask = sparse.bigbird_mask(length, window, num_global, num_random, generator)
    return mask & mask.T


@exercise.misconception("""
    Every row got the same random keys. That makes them global tokens of another name; the short paths of a random graph
    come from each row drawing its own.
""")
def one_draw_for_all_rows(length, window, num_global, num_random, generator):
    mask = _fixed(length, window, num_global)
    order = torch.randperm(length, generator=generator)
    for i in range(num_global, length):
        mask[i, order[mask[i][order]][:num_random]] = False
    return mask


@exercise.misconception("""
    Your random keys all lie before the query. BigBird reads in both directions: they may lie ahead too.
""")
def random_keys_from_the_past(length, window, num_global, num_random, generator):
    mask = _fixed(length, window, num_global)
    past = lambda i: mask[i, : i + 1].nonzero().squeeze(-1)  # noqa: E731
    return _add_random(mask, range(num_global, length), past, num_random, generator)


@exercise.misconception("""
    Equal generators give different masks: you draw from the library's global generator. Hand `generator` to every
    function that draws; otherwise nobody can repeat your run.
""")
def generator_not_used(length, window, num_global, num_random, generator):
    return sparse.bigbird_mask(length, window, num_global, num_random, None)


@exercise.misconception("""
    Different generators give the same mask. If you make a generator of your own with a fixed seed, or take the first
    free keys, nothing is random any more.
""")
def first_free_keys(length, window, num_global, num_random, generator):
    own = torch.Generator().manual_seed(0)
    return sparse.bigbird_mask(length, window, num_global, num_random, own)


@exercise.misconception("""
    The random keys of each row lie side by side: one start was drawn, and the keys after it came along. BigBird's fast
    form draws random **blocks**; this mask draws every key on its own, so that links lead to more places.
""")
def keys_side_by_side(length, window, num_global, num_random, generator):
    mask = _fixed(length, window, num_global)
    for i in range(num_global, length):
        free = mask[i].nonzero()[:, 0]
        starts = max(1, len(free) - num_random + 1)
        start = int(torch.randint(starts, (1,), generator=generator))
        mask[i, free[start : start + num_random]] = False
    return mask


@exercise.misconception("""
    Your window has the size right and looks back only. BigBird's window goes to both sides: |i - j| < window.
""")
def causal_window(length, window, num_global, num_random, generator):
    mask = sparse.sliding_window_mask(length, window)
    mask[:num_global] = False
    mask[:, :num_global] = False
    near = ~sparse.sliding_window_mask(length, window, causal=False)
    free = lambda i: (mask[i] & ~near[i]).nonzero().squeeze(-1)  # noqa: E731
    return _add_random(mask, range(num_global, length), free, num_random, generator)


@exercise.misconception("""
    There are no random keys in your mask: it is Longformer's pattern, window and global tokens.
""")
def no_random_keys(length, window, num_global, num_random, generator):
    return _fixed(length, window, num_global)


@exercise.alternative
def by_scores(length, window, num_global, num_random, generator):
    mask = _fixed(length, window, num_global)
    scores = torch.rand(length, length, generator=generator).masked_fill(~mask, -1)
    for i in range(length):
        count = min(num_random, int(mask[i].sum()))
        mask[i, scores[i].topk(count).indices] = False
    return mask


@exercise.alternative
def by_multinomial(length, window, num_global, num_random, generator):
    places = torch.arange(length)
    visible = (places[:, None] - places).abs() < window
    visible[:num_global, :] = True
    visible[:, :num_global] = True
    for i in range(num_global, length):
        chances = (~visible[i]).double()
        count = min(num_random, int(chances.sum()))
        if count:
            visible[i, torch.multinomial(chances, count, generator=generator)] = True
    return ~visible


@exercise.alternative
def one_key_at_a_time(length, window, num_global, num_random, generator):
    mask = _fixed(length, window, num_global)
    for i in range(num_global, length):
        for _ in range(num_random):
            free = mask[i].nonzero()[:, 0].tolist()
            if free:
                mask[i, free[int(torch.randint(len(free), (), generator=generator))]] = False
    return mask
