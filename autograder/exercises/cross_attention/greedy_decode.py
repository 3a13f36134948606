"""Check `greedy_decode`: the likeliest token at every step, until every row has ended."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.cross_attention import CHAPTER
from autograder.exercises.cross_attention.steps import SURE, RowStep
from autograder.program import Program, Run, call
from autograder.values import Named
from course_lib import decoding

STEP = "step"
VOCAB, PLACES = 11, 12


def script(
    draw: Draw,
    ends: list[int],
    max_length: int,
    same: bool = False,
) -> Program:
    """Draw logits whose rows end at given places: the place of the end in the result, 0 for never.

    With `same` the start and the end are one token.
    """
    start, end = (int(token) for token in draw.random.choice(range(1, VOCAB), 2, replace=False))
    table = draw.normal(len(ends), PLACES, VOCAB, VOCAB)
    table[..., end] = -SURE
    for row, place in enumerate(ends):
        if place:
            table[row, place - 1, :, end] = SURE
    return call(Named(STEP, args=(table,)), end if same else start, end, max_length, len(ends))


def different_ends(draw: Draw) -> Program:
    """Let rows end at different places, all before the limit."""
    return script(draw, [int(place) for place in draw.random.permutation([2, 4, 5])], 9)


def limit_first(draw: Draw) -> Program:
    """Let one row end and the others run into the limit."""
    return script(draw, [int(place) for place in draw.random.permutation([0, 3, 0, 0])], 6)


def last_moment(draw: Draw) -> Program:
    """Let the last row end in the last place that the limit allows."""
    return script(draw, [int(place) for place in draw.random.permutation([6, 2])], 7)


def no_more_calls(program: Program, run: Run) -> str | None:
    """Say when `step` was asked more often than the result needs."""
    needed, found = run.outcomes[0].shape[1] - 1, run.calls.get(STEP, 0)
    if found <= needed:
        return None
    return f"the tokens are right, but `step` was called {found} times and {needed} are enough"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=decoding.greedy_decode,
    returns=("the result",),
    named={STEP: RowStep},
    cases=[
        Case("rows end at different steps", different_ends, limit=no_more_calls),
        Case("the limit comes first", limit_first, limit=no_more_calls),
        Case("the end in the last place", last_moment, hidden=True, limit=no_more_calls),
        Case("one row", lambda draw: script(draw, [4], 9), hidden=True, limit=no_more_calls),
        Case("the start is the end's token", lambda draw: script(draw, [3, 5, 2], 8, same=True), hidden=True),
        Case("no room for any token", lambda draw: script(draw, [1, 2], 1), hidden=True, limit=no_more_calls),
        Case("all rows end at once", lambda draw: script(draw, [3, 3, 3, 3], 8), hidden=True, limit=no_more_calls),
    ],
)


def _decode(step, start_id, end_id, max_length, batch, *, fill=None, stop=torch.all, view=lambda tokens: tokens):
    """Decode with one rule changed: what fills ended rows, when to stop, what `step` sees."""
    tokens = torch.full((batch, 1), start_id)
    ended = torch.zeros(batch, dtype=torch.bool)
    while tokens.shape[1] < max_length and not stop(ended):
        chosen = step(view(tokens)).argmax(-1)
        if fill is not False:
            chosen = chosen.masked_fill(ended, end_id if fill is None else fill)
        ended = ended | (chosen == end_id)
        tokens = torch.cat([tokens, chosen[:, None]], 1)
    return tokens


@exercise.misconception("""
    Rows that have ended go on being written. What comes after the end means nothing; fill such rows up with `end_id`
    while the others are not done.
""")
def ended_rows_go_on(step, start_id, end_id, max_length, batch):
    return _decode(step, start_id, end_id, max_length, batch, fill=False)


@exercise.misconception("""
    You stop as soon as **one** row has ended, and cut off the others. Rows are separate sequences; wait for all.
""")
def stops_with_the_first(step, start_id, end_id, max_length, batch):
    return _decode(step, start_id, end_id, max_length, batch, stop=torch.any)


@exercise.misconception("""
    You write on to `max_length` although every row has ended. Each step costs a pass through the decoder: stop when
    nobody has anything to say.
""")
def never_stops(step, start_id, end_id, max_length, batch):
    return _decode(step, start_id, end_id, max_length, batch, stop=lambda ended: False)


@exercise.misconception("""
    Your tokens are right, but `step` is asked up to `max_length` and the rest is cut away at the end. The calls are
    what costs: look at the rows **before** you ask again.
""")
def trimmed_afterwards(step, start_id, end_id, max_length, batch):
    tokens = never_stops(step, start_id, end_id, max_length, batch)
    wanted = decoding.greedy_decode(step, start_id, end_id, max_length, batch)
    return tokens[:, : wanted.shape[1]]


@exercise.misconception("""
    Your result is one token longer than `max_length` allows: the start counts too.
""")
def start_not_counted(step, start_id, end_id, max_length, batch):
    return _decode(step, start_id, end_id, max_length + 1, batch)


@exercise.misconception("""
    The start is missing in your result. It begins with `start_id`, as what the decoder read did.
""")
def start_left_out(step, start_id, end_id, max_length, batch):
    return _decode(step, start_id, end_id, max_length, batch)[:, 1:]


@exercise.misconception("""
    `step` sees only the newest token, and so cannot know what was written before. (A decoder that keeps keys and
    values of its own past may be fed like that; this one gets all tokens so far.)
""")
def newest_token_only(step, start_id, end_id, max_length, batch):
    return _decode(step, start_id, end_id, max_length, batch, view=lambda tokens: tokens[:, -1:])


@exercise.misconception("""
    Ended rows are filled up with 0. That may be any token; the contract fills up with `end_id`.
""")
def filled_with_zero(step, start_id, end_id, max_length, batch):
    return _decode(step, start_id, end_id, max_length, batch, fill=0)


@exercise.misconception("""
    Ended rows are filled up with the start. Fill up with `end_id`.
""")
def filled_with_the_start(step, start_id, end_id, max_length, batch):
    return _decode(step, start_id, end_id, max_length, batch, fill=start_id)


@exercise.misconception("""
    Where the start and the end are one token, as in BART, you stop before you begin: the start is taken for an end.
    Only a token that was **written** can end a row.
""")
def start_taken_for_the_end(step, start_id, end_id, max_length, batch):
    tokens = torch.full((batch, 1), start_id)
    while tokens.shape[1] < max_length and not (tokens == end_id).any(1).all():
        chosen = step(tokens).argmax(-1).masked_fill((tokens == end_id).any(1), end_id)
        tokens = torch.cat([tokens, chosen[:, None]], 1)
    return tokens


@exercise.misconception("""
    Only the first row decides when you stop. Look at all rows.
""")
def first_row_decides(step, start_id, end_id, max_length, batch):
    return _decode(step, start_id, end_id, max_length, batch, stop=lambda ended: ended[0])


@exercise.misconception("""
    The end itself is missing: a row that ends keeps its last real token only in part of your result. The end was
    written like any other token, and tells a reader where to stop.
""")
def end_left_out(step, start_id, end_id, max_length, batch):
    tokens = _decode(step, start_id, end_id, max_length, batch)
    return tokens[:, :-1] if (tokens[:, -1] == end_id).all() else tokens


@exercise.misconception("""
    You take the **least** likely token: `argmin` in place of `argmax`, or logits turned round.
""")
def least_likely(step, start_id, end_id, max_length, batch):
    return _decode(lambda tokens: -step(tokens), start_id, end_id, max_length, batch)


@exercise.misconception("""
    Your result is a list. Return a tensor (batch, written), with rows filled up, so that it can be compared and fed on.
""")
def list_returned(step, start_id, end_id, max_length, batch):
    return _decode(step, start_id, end_id, max_length, batch).tolist()


@exercise.alternative
def into_a_buffer(step, start_id, end_id, max_length, batch):
    written = torch.full((batch, max_length), end_id, dtype=torch.long)
    written[:, 0] = start_id
    open_rows, length = torch.ones(batch, dtype=torch.bool), 1
    for place in range(1, max_length):
        if not open_rows.any():
            break
        best = torch.argmax(torch.softmax(step(written[:, :place]), dim=-1), dim=-1)
        written[open_rows, place] = best[open_rows]
        open_rows &= best != end_id
        length = place + 1
    return written[:, :length]


@exercise.alternative
def with_where(step, start_id, end_id, max_length, batch):
    tokens = torch.tensor([[start_id]] * batch)
    done = torch.tensor([False] * batch)
    for _ in range(max_length - 1):
        best = step(tokens).max(dim=1).indices
        best = torch.where(done, torch.tensor(end_id), best)
        tokens = torch.cat((tokens, best.unsqueeze(1)), dim=1)
        done = done | best.eq(end_id)
        if done.all():
            break
    return tokens


@exercise.alternative
def by_columns(step, start_id, end_id, max_length, batch):
    columns, done = [torch.full((batch,), start_id)], torch.zeros(batch, dtype=torch.bool)
    while len(columns) < max_length and not bool(done.all()):
        best = step(torch.stack(columns, dim=1)).topk(1).indices.squeeze(1)
        best[done] = end_id
        done |= best == end_id
        columns.append(best)
    return torch.stack(columns, dim=1)
